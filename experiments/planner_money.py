"""Equal money: the cheapest mix of devices that reaches a throughput, for each task alone and for all together.

    python experiments/planner_money.py [--points 4] [--tasks NAME,...] [--simulate] [--minutes 12]

Of up to 96 H800 and 32 H20, as in the paper, for Qwen3-32B. For each workload the shortest step is solved first; then
the cheapest step under deadlines that are multiples of it. The same deadlines with one kind of device alone, and other
ways to plan as the model predicts them. Cost is for the devices that a plan takes. With `--simulate` each mix and each
other way is simulated once too: two steps of warm-up and two that count, under seed 0. Writes planner-money.json after
each point (run it again to go on) and planner-money.png.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path

from rollart import api
from rollart.domain.errors import RollArtError
from rollart.domain.job import Job
from rollart.domain.plan import Plan
from rollart.domain.planning import Limits, Objective
from rollart.planning.evaluator import Evaluator, Workers
from rollart.planning.memory import Memory, default_path
from rollart.planning.pieces import Pieces
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_panels, save
from rollart.sched.placement.baselines.fixed_split import fixed_split
from rollart.sched.placement.baselines.stage_balance import stage_balance
from rollart.sched.placement.baselines.two_phase import two_phase
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
MIX = "mix"


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

    def fastest(self) -> Point:
        """The shortest step of all devices."""
        return self._point(MIX, self._job, self._solved(self._job, Objective.STEP_TIME, None))

    def wanted(self, shortest_s: float, count: int) -> Iterator[tuple[str, Callable[[], Point | None]]]:
        """Key -> how to make a point: cheapest plans of all devices and of each kind alone, and other ways to plan."""
        pools = self._job.cluster.pools
        kinds = {f"{name} alone": replace(self._job.cluster, pools={name: pool}) for name, pool in pools.items()}
        for series, cluster in {MIX: self._job.cluster, **kinds}.items():
            job = replace(self._job, cluster=cluster)
            for place in range(count):
                deadline_s = shortest_s * SLOWEST ** ((place + 0.5) / count)
                yield f"{series} {place}", partial(self._cheapest, series, job, deadline_s)
        ground = ground_of(self._job, self._workload)
        ways: dict[str, Callable[[], Plan]] = {
            "paper's choice": lambda: self._job.plan,
            "1:1 split": lambda: fixed_split(ground, 1.0),
            "3:1 split": lambda: fixed_split(ground, 3.0),
            "stage balance (StreamRL)": lambda: stage_balance(ground),
            "two phases (AReaL-Hex)": lambda: two_phase(ground),
        }
        for series, way in ways.items():
            yield series, partial(self._fixed, series, way)

    def _cheapest(self, series: str, job: Job, deadline_s: float) -> Point | None:
        """The cheapest plan under a deadline; None where none keeps it."""
        try:
            return self._point(series, job, self._solved(job, Objective.COST, deadline_s))
        except RollArtError as error:
            print(f"{self._name}, {series}, {deadline_s:.0f} s: {error}", file=sys.stderr)
            return None

    def _fixed(self, series: str, way: Callable[[], Plan]) -> Point | None:
        expected = predict(Problem(job=self._job, workload=self._workload), way())
        return None if expected is None else self._point(series, self._job, expected)

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
        if self._evaluate is None or series.endswith("alone"):
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
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, then begin nothing new")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    scenario = api.load_scenario(SCENARIO)
    config = {"points": options.points, "simulate": options.simulate, "counted_steps": COUNTED_STEPS}
    file = options.out / "planner-money.json"
    pieces = Pieces(file, config, version=api.code_version(), minutes=options.minutes)
    memory = Memory(default_path())
    with Workers(options.workers) as workers:
        evaluate = Evaluator(scenario, workers, memory) if options.simulate else None
        for name, job in workloads(scenario, [each for each in options.tasks.split(",") if each]).items():
            explore(name, Market(name, job, scenario.workload(), evaluate), pieces, options.points)
    memory.close()
    points = points_of(pieces)
    lines = table_lines(points)
    pieces.write({"lines": lines})
    draw(options.out / "planner-money.png", points)
    print("\n".join(lines))


def explore(name: str, market: Market, pieces: Pieces, count: int) -> None:
    """All points of a workload that are not there yet."""
    first = f"{name}: {MIX}, fastest"
    if pieces.wanted(first):
        keep(pieces, first, market.fastest())
    if first not in pieces.results:
        return
    for key, make in market.wanted(pieces.results[first]["point"]["step_s"], count):
        if pieces.wanted(f"{name}: {key}"):
            keep(pieces, f"{name}: {key}", make())


def keep(pieces: Pieces, key: str, made: Point | None) -> None:
    """A point, or that there is none."""
    pieces.put(key, {"point": None if made is None else asdict(made)})
    shown = "none" if made is None else f"{made.devices}, {made.step_s:.0f} s, {made.cost_per_1000:.1f} a thousand"
    print(f"{key}: {shown}", file=sys.stderr, flush=True)


def points_of(pieces: Pieces) -> list[Point]:
    """The points that are there."""
    kept = [one["point"] for one in pieces.results.values() if one["point"] is not None]
    return [Point(**{field.name: one[field.name] for field in fields(Point)}) for one in kept]


if __name__ == "__main__":
    main()
