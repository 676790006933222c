"""The paper's cluster: the planner against the paper's own choice and every other way to plan.

    python experiments/planner_paper.py [--scenario paper-128] [--seeds 2] [--steps 4] [--only NAME,...] [--minutes 12]

96 H800 and 32 H20, Qwen3-32B, five tasks. Every plan is simulated under the same seeds, which had no part in choosing
any of them; it pays for the devices that it takes. The searches that simulate get as many simulations as the planner
asked for. Writes planner-paper.json after each way to plan (run it again to go on) and planner-paper.png, and says
which task goes where.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rollart import api
from rollart.domain.errors import CapacityError, RollArtError
from rollart.domain.plan import Plan
from rollart.domain.planning import Objective
from rollart.planning.evaluator import Evaluator, Workers
from rollart.planning.memory import Memory, default_path
from rollart.planning.pieces import Pieces
from rollart.planning.plan_scenario import plan_scenario
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, save
from rollart.scenario.plan_file import placement_mapping
from rollart.sched.placement.baselines.fixed_split import fixed_split
from rollart.sched.placement.baselines.multi_level import multi_level
from rollart.sched.placement.baselines.random_search import random_search
from rollart.sched.placement.baselines.stage_balance import stage_balance
from rollart.sched.placement.baselines.two_phase import two_phase
from rollart.sched.placement.ground import Ground, ground_of
from rollart.sched.placement.judge import FRESH_SEED, Judge
from rollart.sched.placement.solve import Problem, solve
from rollart.sched.placement.trial import Trials

SCENARIOS = Path(__file__).parent / "scenarios"
SEARCH_SEED = 7
SIMULATIONS = 11
"""Of each search, where the planner was not asked before: about what it takes for four candidates."""
JUDGED_FROM = FRESH_SEED + 100
"""Seeds of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One way to plan, and how its plan does."""

    name: str
    training: str
    rollout: str
    simulations: int
    """That were spent to find the plan."""
    found_s: float
    step_s: float
    cost: float
    lowest_s: float
    highest_s: float
    placement: Mapping[str, Any]


class Contest:
    """All ways to plan one scenario, in one harness."""

    def __init__(self, scenario: api.Scenario, evaluate: Evaluator, seeds: int, planner: api.PlanOptions) -> None:
        self._scenario = scenario
        self._evaluate = evaluate
        self._seeds = range(JUDGED_FROM, JUDGED_FROM + seeds)
        self._options = planner
        self.job = scenario.job()
        self.judge = Judge(trials=Trials(job=self.job, counted_steps=planner.counted_steps))
        self.ground: Ground = ground_of(self.job, scenario.workload())
        self.report: api.PlanReport | None = None
        self.granted = SIMULATIONS
        """Simulations of each search."""

    def ways(self) -> dict[str, Callable[[], tuple[Plan, int]]]:
        """Name -> how to find a plan; returns it with the simulations that it took."""
        ground, judge, evaluate = self.ground, self.judge, self._evaluate

        def searched(search: Callable[..., Plan]) -> tuple[Plan, int]:
            generator = np.random.default_rng(SEARCH_SEED)
            return search(ground, judge, evaluate, generator, self.granted), self.granted

        return {
            "planner": lambda: self._planner(self._options),
            "planner, for cost": lambda: self._planner(replace(self._options, objective=Objective.COST)),
            "paper's choice": lambda: (self.job.plan, 0),
            "1:1 split": lambda: (fixed_split(ground, 1.0), 0),
            "3:1 split": lambda: (fixed_split(ground, 3.0), 0),
            **{f"{name} alone": partial(self._alone, name) for name in self.job.cluster.pools},
            "stage balance (StreamRL)": lambda: (stage_balance(ground), 0),
            "two phases (AReaL-Hex)": lambda: (two_phase(ground), 0),
            "multi-level search (HetRL)": lambda: searched(multi_level),
            "random search": lambda: searched(random_search),
        }

    def entry(self, name: str, way: Callable[[], tuple[Plan, int]]) -> Entry:
        """Find a plan and judge it."""
        began = time.perf_counter()
        plan, simulations = way()
        found_s = time.perf_counter() - began
        outcomes = self._evaluate([self.judge.trials.of(plan, seed) for seed in self._seeds])
        if failure := next((outcome.failure for outcome in outcomes if outcome.failure), None):
            raise CapacityError(failure)
        times = [outcome.mean_step_s for outcome in outcomes]
        trainer = plan.placement.trainer
        return Entry(
            name=name,
            training=f"{trainer.devices} {trainer.pool}",
            rollout=", ".join(f"{group.engines} {group.name}" for group in plan.placement.engine_groups),
            simulations=simulations,
            found_s=found_s,
            step_s=fmean(times),
            cost=fmean(outcome.mean_cost for outcome in outcomes),
            lowest_s=min(times),
            highest_s=max(times),
            placement=placement_mapping(plan.placement),
        )

    def _planner(self, options: api.PlanOptions) -> tuple[Plan, int]:
        self.report = plan_scenario(self._scenario, options, evaluate=self._evaluate)
        verdict = self.report.verdict
        return self.report.best.plan, 0 if verdict is None else verdict.simulations

    def _alone(self, pool: str) -> tuple[Plan, int]:
        """The planner's own plan for one pool; every other pool stays idle, and nothing is simulated."""
        cluster = replace(self.job.cluster, pools={pool: self.job.cluster.pools[pool]})
        problem = Problem(job=replace(self.job, cluster=cluster), workload=self._scenario.workload())
        return solve(problem, clock=time.perf_counter, time_limit_s=self._options.time_limit_s).best.plan, 0


def table_lines(entries: Sequence[Entry]) -> list[str]:
    """The entries as a Markdown table, the fastest first."""
    ordered = sorted(entries, key=lambda entry: entry.step_s)
    lines = [
        "| way to plan | training | rollout | simulations | step, s | over the seeds | cost of a step |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in ordered:
        lines.append(
            f"| {entry.name} | {entry.training} | {entry.rollout} | {entry.simulations} | "
            f"{entry.step_s:.1f} | {entry.lowest_s:.1f}-{entry.highest_s:.1f} | {entry.cost:.2f} |"
        )
    return lines


def affinity_lines(report: api.PlanReport, theirs: Plan) -> list[str]:
    """Which task goes where, beside the affinity of the scenario."""
    groups = {group.name: group.pool for group in report.best.plan.placement.engine_groups}
    lines = ["| task | planner | paper | agree |", "|---|---|---|---|"]
    for task, named in report.best.plan.placement.affinity.items():
        shares = report.best.predicted.shares.get(task, {})
        pools: dict[str, float] = {}
        for name in named:
            pools[groups[name]] = pools.get(groups[name], 0.0) + shares.get(name, 0.0)
        own = ", ".join(f"{pool} {100 * share:.0f} %" if shares else pool for pool, share in sorted(pools.items()))
        paper = ", ".join(theirs.placement.affinity.get(task, ()))
        main = max(pools, key=lambda pool: pools[pool]) if pools else ""
        lines.append(f"| {task} | {own} | {paper} | {'yes' if main == paper else 'no'} |")
    return lines


def draw(path: Path, entries: Sequence[Entry]) -> None:
    """Cost against step time, a point for each way to plan."""
    figure, axes = new_figure("Ways to plan the paper's cluster: a step's time and cost, simulated")
    for place, entry in enumerate(sorted(entries, key=lambda one: one.step_s)):
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        marker = "*" if entry.name.startswith("planner") else "o"
        axes.errorbar(
            entry.step_s,
            entry.cost,
            xerr=[[entry.step_s - entry.lowest_s], [entry.highest_s - entry.step_s]],
            fmt=marker,
            markersize=14 if marker == "*" else 8,
            color=colour,
            label=f"{entry.name}: {entry.step_s:.0f} s, {entry.cost:.1f}",
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    label(axes, "step time, s", "cost of a step", grid="both")
    save(figure, path)


def main() -> None:
    """Plan in every way, simulate, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="paper-128", help="name of a file in experiments/scenarios")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--seeds", type=int, default=2, help="simulations of each plan in the comparison")
    parser.add_argument("--steps", type=int, default=4, help="counted steps of a simulation")
    parser.add_argument("--repetitions", type=int, default=4, help="of the planner's judge; 0: its model alone decides")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds of the optimiser")
    parser.add_argument("--only", default="", help="ways to plan, with commas between them")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, then begin nothing new")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    scenario = api.load_scenario(SCENARIOS / f"{options.scenario}.yaml", options.settings)
    config = {key: getattr(options, key) for key in ("scenario", "settings", "seeds", "steps", "repetitions")}
    file = options.out / "planner-paper.json"
    pieces = Pieces(file, config, version=api.code_version(), minutes=options.minutes)
    memory = Memory(default_path())
    with Workers(options.workers) as workers:
        planner = api.PlanOptions(
            counted_steps=options.steps, repetitions=options.repetitions, time_limit_s=options.time_limit
        )
        contest = Contest(scenario, Evaluator(scenario, workers, memory), options.seeds, planner)
        run(contest, pieces, [name for name in options.only.split(",") if name])
    memory.close()
    entries = [Entry(**{field.name: kept[field.name] for field in fields(Entry)}) for kept in pieces.results.values()]
    lines = table_lines(entries)
    for kept in pieces.results.values():
        lines += ["", *kept.get("lines", [])]
    pieces.write({"lines": lines})
    draw(options.out / "planner-paper.png", entries)
    print("\n".join(lines))


def run(contest: Contest, pieces: Pieces, only: Sequence[str]) -> None:
    """All entries that are wanted; progress on stderr."""
    for name, way in contest.ways().items():
        contest.granted = pieces.results.get("planner", {}).get("simulations") or SIMULATIONS
        if (only and name not in only) or not pieces.wanted(name):
            continue
        try:
            entry = contest.entry(name, way)
        except RollArtError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        found: dict[str, Any] = asdict(entry)
        if name.startswith("planner") and contest.report is not None:
            found["report"] = contest.report.as_dict()
            found["lines"] = [*affinity_lines(contest.report, contest.job.plan), "", *proof_lines(contest.report)]
        pieces.put(name, found)
        print(f"{name}: {entry.step_s:.1f} s a step, {entry.cost:.2f}", file=sys.stderr, flush=True)


def proof_lines(report: api.PlanReport) -> list[str]:
    """Bound, gap and floor."""
    shown = report.as_dict()
    simulated = shown["simulated"]["mean"] if shown["simulated"] else float("nan")
    return [
        f"{shown['objective']}, {shown['status']}: predicted {shown['predicted']:.1f}, bound {shown['bound']:.1f}, gap "
        f"{100 * shown['gap']:.2f} % (asked: under 1) in {shown['wall_s']:.1f} s (asked: 10); "
        f"floor {shown['floor']:.1f}, {shown['floor'] / simulated:.2f} of the simulated (asked: 0.6)"
    ]


if __name__ == "__main__":
    main()
