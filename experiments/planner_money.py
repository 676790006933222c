"""Equal money: the cheapest mix of devices that reaches a throughput, for each task alone and for all together.

    python experiments/planner_money.py [--points 4] [--tasks NAME,...] [--simulate] [--out experiments/results]

Of up to 96 H800 and 32 H20, as in the paper, for Qwen3-32B. For each workload the shortest step is solved first; then
the cheapest step under deadlines that are multiples of it. The same deadlines with one kind of device alone, and the
paper's own choice and fixed splits as the model predicts them. Cost is for the devices that a plan takes. With
`--simulate` each mix is simulated once too. Writes planner-money.json (after each workload) and planner-money.png.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rollart import api
from rollart.domain.errors import RollArtError
from rollart.domain.job import Job
from rollart.domain.plan import Plan
from rollart.domain.planning import Limits, Objective
from rollart.planning.evaluator import Evaluator, Workers
from rollart.planning.memory import Memory, default_path
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_panels, save
from rollart.report.output import write_text
from rollart.sched.placement.baselines.fixed_split import fixed_split
from rollart.sched.placement.ground import ground_of
from rollart.sched.placement.report import Candidate
from rollart.sched.placement.solve import Problem, predict, solve
from rollart.sched.placement.trial import Trials
from rollart.workload.trajectory import Workload

SCENARIO = Path(__file__).parent / "scenarios/paper-128.yaml"
TOGETHER = "all five"
SLOWEST = 8.0
"""The last deadline, in shortest steps."""
COUNTED_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A plan with its throughput and cost."""

    workload: str
    series: str
    devices: str
    step_s: float
    trajectories_per_h: float
    cost_per_h: float
    cost_per_1000: float
    """Of a thousand trained trajectories."""
    simulated_step_s: float | None = None
    simulated_cost_per_1000: float | None = None


def workloads(scenario: api.Scenario, wanted: Sequence[str]) -> dict[str, Job]:
    """Each task alone, then all together."""
    job = scenario.job()
    alone = {task.name: replace(job, tasks=(replace(task, share=1.0),)) for task in job.tasks}
    found = {**{name: replace(one, plan=_without_affinity(one.plan)) for name, one in alone.items()}, TOGETHER: job}
    return {name: one for name, one in found.items() if not wanted or name in wanted}


def _without_affinity(plan: Plan) -> Plan:
    return replace(plan, placement=replace(plan.placement, affinity={}))


def point(name: str, series: str, job: Job, found: Candidate) -> Point:
    """A candidate as a point."""
    placement, predicted = found.plan.placement, found.predicted
    counts: dict[str, int] = {}
    for group in placement.engine_groups:
        counts[group.pool] = counts.get(group.pool, 0) + group.devices
    rollout = " + ".join(f"{count} {pool}" for pool, count in sorted(counts.items()))
    steps_per_h = 3600.0 / predicted.step_s
    return Point(
        workload=name,
        series=series,
        devices=f"{placement.trainer.devices} {placement.trainer.pool} train, {rollout} roll out",
        step_s=predicted.step_s,
        trajectories_per_h=job.training.batch_size * steps_per_h,
        cost_per_h=predicted.cost_per_step * steps_per_h,
        cost_per_1000=1000.0 * predicted.cost_per_step / job.training.batch_size,
    )


class Market:
    """One workload: what throughput costs."""

    def __init__(self, name: str, job: Job, workload: Workload, evaluate: Evaluator | None) -> None:
        self._name = name
        self._job = job
        self._workload = workload
        self._evaluate = evaluate

    def points(self, count: int) -> list[Point]:
        """Cheapest plans of all devices and of each kind alone, and what is there to compare."""
        fastest = self._solved(self._job, Objective.STEP_TIME, None)
        shortest_s = fastest.predicted.step_s
        deadlines_s = [shortest_s * SLOWEST ** ((place + 0.5) / count) for place in range(count)]
        found = [self._point("mix", self._job, fastest), *self._front("mix", self._job, deadlines_s)]
        for pool in self._job.cluster.pools.values():
            cluster = replace(self._job.cluster, pools={pool.name: pool})
            found += self._front(f"{pool.name} alone", replace(self._job, cluster=cluster), deadlines_s)
        ground = ground_of(self._job, self._workload)
        fixed = {"1:1 split": fixed_split(ground, 1.0), "3:1 split": fixed_split(ground, 3.0)}
        for series, plan in {"paper's choice": self._job.plan, **fixed}.items():
            expected = predict(Problem(job=self._job, workload=self._workload), plan)
            if expected is not None:
                found.append(self._point(series, self._job, expected))
        return found

    def _front(self, series: str, job: Job, deadlines_s: Sequence[float]) -> list[Point]:
        """The cheapest plan under each deadline that can be kept."""
        found = []
        for deadline_s in deadlines_s:
            try:
                found.append(self._point(series, job, self._solved(job, Objective.COST, deadline_s)))
            except RollArtError:
                print(f"{self._name}, {series}: no plan within {deadline_s:.0f} s", file=sys.stderr)
        print(f"{self._name}, {series}: {', '.join(f'{one.cost_per_1000:.1f}' for one in found)}", file=sys.stderr)
        return found

    def _solved(self, job: Job, objective: Objective, deadline_s: float | None) -> Candidate:
        return solve(
            Problem(job=job, workload=self._workload),
            clock=time.perf_counter,
            objective=objective,
            limits=Limits(step_s=deadline_s),
            time_limit_s=120.0,
            top=1,
        ).best

    def _point(self, series: str, job: Job, found: Candidate) -> Point:
        made = point(self._name, series, job, found)
        if self._evaluate is None:
            return made
        (outcome,) = self._evaluate([Trials(job=job, counted_steps=COUNTED_STEPS).of(found.plan, 0)])
        if outcome.failure is not None:
            return made
        cost = 1000.0 * outcome.mean_cost / job.training.batch_size
        return replace(made, simulated_step_s=outcome.mean_step_s, simulated_cost_per_1000=cost)


def table_lines(points: Sequence[Point]) -> list[str]:
    """For each workload the points, fastest first."""
    lines = [
        "| workload | series | devices | step, s | trajectories an hour | an hour | a thousand | simulated |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(points, key=lambda each: (each.workload, each.series, each.step_s)):
        simulated = "-"
        if one.simulated_step_s is not None:
            simulated = f"{one.simulated_step_s:.0f} s, {one.simulated_cost_per_1000:.1f}"
        lines.append(
            f"| {one.workload} | {one.series} | {one.devices} | {one.step_s:.0f} | {one.trajectories_per_h:.0f} | "
            f"{one.cost_per_h:.0f} | {one.cost_per_1000:.1f} | {simulated} |"
        )
    return lines


def draw(path: Path, points: Sequence[Point]) -> None:
    """Cost of a thousand trajectories against throughput, a panel for each workload."""
    names = list(dict.fromkeys(one.workload for one in points))
    series = list(dict.fromkeys(one.series for one in points))
    figure, panels = new_panels(
        "What throughput costs: the cheapest mix, one kind alone, and fixed choices", len(names)
    )
    for axes, name in zip(panels, names, strict=True):
        for place, each in enumerate(series):
            own = [one for one in points if (one.workload, one.series) == (name, each)]
            own.sort(key=lambda one: one.trajectories_per_h)
            style = "o-" if len(own) > 1 else "*"
            axes.plot(
                [one.trajectories_per_h for one in own],
                [one.cost_per_1000 for one in own],
                style,
                color=SERIES_COLOURS[place % len(SERIES_COLOURS)],
                label=each,
                markersize=11 if style == "*" else 5,
            )
        axes.set_title(name, loc="left")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        label(axes, "trained trajectories an hour", "cost of a thousand", grid="both")
    panels[0].legend(frameon=False, fontsize=9)
    save(figure, path)


def main() -> None:
    """Solve, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=4, help="deadlines beside the shortest step")
    parser.add_argument("--tasks", default="", help="workloads, with commas between them; default: all")
    parser.add_argument("--simulate", action="store_true", help="simulate every plan once")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    scenario = api.load_scenario(SCENARIO)
    points: list[Point] = []
    memory = Memory(default_path())
    with Workers(options.workers) as workers:
        evaluate = Evaluator(scenario, workers, memory) if options.simulate else None
        for name, job in workloads(scenario, [each for each in options.tasks.split(",") if each]).items():
            points += Market(name, job, scenario.workload(), evaluate).points(options.points)
            write(options.out, points, {"points": options.points, "simulate": options.simulate})
    memory.close()
    print("\n".join(table_lines(points)))


def write(folder: Path, points: Sequence[Point], config: Mapping[str, object]) -> None:
    """Everything so far, and the picture."""
    content = {"code_version": api.code_version(), **config, "results": [asdict(one) for one in points]}
    write_text(folder / "planner-money.json", json.dumps(content, indent=1) + "\n")
    draw(folder / "planner-money.png", points)


if __name__ == "__main__":
    main()
