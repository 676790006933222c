"""Tiny instances: the planner against exhaustive enumeration through the simulator.

    python experiments/planner_tiny.py [--instances 30] [--seed 0] [--minutes 12] [--out experiments/results]

Each instance has up to 8 GPUs in two or three pools, two or three tasks and a small model, all drawn. The grid is
printed before anything is planned: every trainer that fits (pool, number of devices, fastest cut), every size of engine
on every pool or none, every engine group or all of them for each task. All its plans are simulated for four steps; the
best of them, up to 16 within 12 %, under two seeds for as many steps as a judge's simulations have. Regret is what the
planner's winner takes longer than the grid's best, under the same seeds; it can be negative, since the planner may mix
engine sizes within a pool. Those seeds chose the grid's best among all, so it was lucky under them; under fresh seeds
neither plan is. Regret has two parts: what the best of the judged candidates lacks, and what the judge's choice among
them lacks. Of each grid some plans are drawn, and what the model predicts for them is set beside what was simulated.
Writes planner-tiny.json after each instance (run it again to go on), planner-tiny.png, planner-tiny-predictions.png.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from planner_instances import fitting_instance
from scipy.stats import kendalltau

from rollart import api
from rollart.domain.plan import Plan
from rollart.planning.evaluator import Evaluator, Workers
from rollart.planning.pieces import Pieces
from rollart.planning.plan_scenario import plan_scenario
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, plain_logarithmic, save
from rollart.sched.placement.baselines.enumeration import Enumerated, enumeration
from rollart.sched.placement.ground import ground_of
from rollart.sched.placement.judge import FRESH_SEED, Judge
from rollart.sched.placement.solve import Problem, predict
from rollart.sched.placement.trial import Trials

FIRST_STEPS = 4
"""Counted steps of the first look at all plans."""
MARGIN, MOST_NEAR = 0.12, 16
"""Plans that are simulated for longer: within so much of the best of the first look, and at most so many."""
REPETITIONS = 2
FRESH_REPETITIONS = 2
BOUND_PRECISION = 1e-3
"""Relative width to which the model's search for the shortest step is carried on."""
PREDICTED_PLANS = 12
"""Of each grid, drawn at random; its best plan is one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One instance."""

    instance: int
    pools: str
    model: str
    tasks: int
    grid: int
    grid_simulations: int
    best: float
    """Smallest simulated step time of the grid, in seconds, mean of long simulations."""
    planner: float
    """The planner's winner under the same seeds."""
    regret: float
    fresh_regret: float
    """The same two plans under seeds that chose neither of them."""
    candidates: list[tuple[float, float]]
    """Predicted and simulated step time of the plans that were judged, under the same seeds; the winner first."""
    grid_steps: int
    """Counted steps of those that decided."""
    simulations: int
    """That the planner asked for, the fresh ones included."""
    steps: int
    """Their counted steps."""
    predicted: float
    bound: float
    gap: float
    floor: float
    least_simulated: float
    """Smallest simulated step time of any plan under any seed."""
    solve_s: float
    predictions: list[tuple[float, float]]
    """Predicted and simulated step time of some plans of the grid."""

    @property
    def kendall(self) -> float:
        """Rank correlation of the predictions."""
        predicted, simulated = zip(*self.predictions, strict=True)
        return float(kendalltau(predicted, simulated).statistic)

    @property
    def model_regret(self) -> float:
        """Of the best of the judged candidates: what no judge can mend."""
        return min(simulated for _, simulated in self.candidates) / self.best - 1.0


def solve_instance(number: int, path: Path, drawn: Mapping[str, Any]) -> Result:
    """Enumerate, plan, compare; on one core."""
    scenario = api.load_scenario(path)
    job = scenario.job()
    plans = list(ground_of(job, scenario.workload()).grid.plans())
    judge = Judge(trials=Trials(job=job))
    evaluate = Evaluator(scenario, Workers(1))
    listed = enumerated(plans, judge, evaluate)
    options = api.PlanOptions(top=3, repetitions=1, fresh_repetitions=1)
    report = plan_scenario(scenario, options, evaluate=evaluate)
    seeds = range(REPETITIONS)
    judged = [evaluate([judge.trials.of(one.plan, seed) for seed in seeds]) for one in report.candidates]
    losses = [fmean(judge.loss(outcome) for outcome in outcomes) for outcomes in judged]
    every = [outcome for one in listed for outcome in one.outcomes] + [each for own in judged for each in own]
    assert report.verdict is not None
    return Result(
        instance=number,
        grid=len(plans),
        grid_simulations=len(plans) + sum(len(one.outcomes) for one in listed if len(one.outcomes) > 1),
        grid_steps=sum(len(outcome.step_s) for one in listed for outcome in one.outcomes),
        best=listed[0].loss,
        planner=losses[0],
        regret=losses[0] / listed[0].loss - 1.0,
        fresh_regret=fresh_loss(report.best.plan, judge, evaluate) / fresh_loss(listed[0].plan, judge, evaluate) - 1.0,
        candidates=[(one.value, loss) for one, loss in zip(report.candidates, losses, strict=True)],
        simulations=report.verdict.simulations,
        steps=report.verdict.simulations * len(judged[0][0].step_s),
        predicted=report.best.value,
        bound=report.solved.bound,
        gap=report.solved.gap,
        floor=report.solved.floor,
        least_simulated=min(outcome.mean_step_s for outcome in every),
        solve_s=report.solved.wall_s,
        predictions=predictions(Problem(job=job, workload=scenario.workload()), listed, number),
        **drawn,
    )


def enumerated(plans: Sequence[Plan], judge: Judge, evaluate: Evaluator) -> list[Enumerated]:
    """All plans, the best first: a short look at each, and a long one at those that are near the best."""
    quick = replace(judge, trials=replace(judge.trials, counted_steps=FIRST_STEPS, counted_trajectories=0))
    first = enumeration(plans, quick, evaluate, first=1, repetitions=1, margin=0.0)
    near = [one.plan for one in first if one.loss <= first[0].loss * (1 + MARGIN)][:MOST_NEAR]
    listed = enumeration(near, judge, evaluate, first=REPETITIONS, repetitions=REPETITIONS, margin=-1.0)
    return [*listed, *(one for one in first if one.plan not in near)]


def fresh_loss(plan: Plan, judge: Judge, evaluate: Evaluator) -> float:
    """Mean step time under fresh seeds."""
    outcomes = evaluate([judge.trials.of(plan, FRESH_SEED + 100 + seed) for seed in range(FRESH_REPETITIONS)])
    return fmean(judge.loss(outcome) for outcome in outcomes)


def predictions(problem: Problem, listed: Sequence[Enumerated], seed: int) -> list[tuple[float, float]]:
    """Predicted and simulated step times of the best plan of a grid and of some at random."""
    drawn = np.random.default_rng(seed).permutation(len(listed) - 1)[:PREDICTED_PLANS] + 1
    pairs = []
    for one in (listed[0], *(listed[int(place)] for place in drawn)):
        expected = predict(problem, one.plan)
        if expected is not None and np.isfinite(one.loss):
            pairs.append((expected.value, one.loss))
    return pairs


def verdict_lines(results: list[Result]) -> list[str]:
    """The figures that count."""
    regrets = [result.regret for result in results]
    shares = [result.simulations / result.grid_simulations for result in results]
    floors = [result.floor / result.planner for result in results]
    broken = sum(result.least_simulated < result.floor for result in results)
    pairs = [(result.bound, *pair) for result in results for pair in result.predictions]
    beaten = sum(predicted < bound * (1 - BOUND_PRECISION) for bound, predicted, _ in pairs)
    taus = [result.kendall for result in results]
    without_judge = [result.model_regret for result in results]
    fresh = [result.fresh_regret for result in results]
    errors = [abs(predicted / simulated - 1.0) for _, predicted, simulated in pairs]
    return [
        f"regret: mean {100 * fmean(regrets):.2f} % (asked 2), worst {100 * max(regrets):.2f} % (asked 5)",
        f"of it what the best judged candidate lacks: mean {100 * fmean(without_judge):.2f} %, worst "
        f"{100 * max(without_judge):.2f} %",
        f"regret under fresh seeds, which chose neither plan: mean {100 * fmean(fresh):.2f} %, median "
        f"{100 * float(np.median(fresh)):.2f} %, worst {100 * max(fresh):.2f} %",
        f"simulations: {100 * sum(r.simulations for r in results) / sum(r.grid_simulations for r in results):.2f} % of "
        f"the enumeration's (asked 5), {100 * max(shares):.2f} % at most; by counted steps "
        f"{100 * sum(r.steps for r in results) / sum(r.grid_steps for r in results):.2f} %",
        f"gap: {100 * max(result.gap for result in results):.2f} % at most; solved in "
        f"{max(result.solve_s for result in results):.1f} s at most",
        f"bound: beaten by {beaten} of {len(pairs)} predictions of plans of the grids (asked 0)",
        f"predictions: median error {100 * float(np.median(errors)):.2f} %, Kendall's tau within an instance "
        f"{fmean(taus):.2f} in the mean, {min(taus):.2f} at least",
        f"floor / simulated: mean {fmean(floors):.2f}, least {min(floors):.2f}; broken {broken} times (asked 0)",
    ]


def draw(path: Path, results: list[Result]) -> None:
    """Per instance: the grid's best, the planner's, what it predicted, and the floor."""
    ordered = sorted(results, key=lambda result: result.regret)
    figure, axes = new_figure("Tiny instances: step time over that of the grid's best plan")
    places = range(len(ordered))
    for name, colour, marker in (
        ("planner", SERIES_COLOURS[0], "o"),
        ("predicted", SERIES_COLOURS[1], "x"),
        ("floor", SERIES_COLOURS[2], "_"),
    ):
        values = [getattr(result, name) / result.best for result in ordered]
        axes.plot(places, values, marker, color=colour, label=name if name != "planner" else "planner, simulated")
    axes.set_xticks(list(places), [str(result.instance) for result in ordered])
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.axhline(1.05, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    label(axes, "instance, by regret", "ratio to the best of the grid")
    save(figure, path)


def draw_predictions(path: Path, results: list[Result]) -> None:
    """Predicted against simulated, each over the best simulated of its instance."""
    figure, axes = new_figure("Plans of tiny grids: predicted against simulated step time, over the grid's best")
    for result in results:
        predicted, simulated = zip(*result.predictions, strict=True)
        axes.plot(np.array(simulated) / result.best, np.array(predicted) / result.best, ".", color=SERIES_COLOURS[0])
    top = max(simulated / result.best for result in results for _, simulated in result.predictions)
    axes.plot((1, top), (1, top), color="black", linewidth=0.8)
    label(axes, "simulated", "predicted", grid="both")
    plain_logarithmic(axes)
    save(figure, path)


def main() -> None:
    """Draw, enumerate, plan, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, then begin nothing new")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    config = {"seed": options.seed, "first_steps": FIRST_STEPS, "margin": MARGIN, "repetitions": REPETITIONS}
    file = options.out / "planner-tiny.json"
    pieces = Pieces(file, config, version=api.code_version(), minutes=options.minutes)
    print("| instance | pools | model | tasks | plans in the grid |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.instances):
            path, described = fitting_instance(options.seed, number, Path(folder))
            if pieces.wanted(str(number)):
                shown = solve_instance(number, path, described)
                pieces.put(str(number), asdict(shown))
                print(progress_line(shown), file=sys.stderr, flush=True)
    results = [result_of(one) for one in pieces.results.values()]
    lines = verdict_lines(results)
    pieces.write({"lines": lines})
    draw(options.out / "planner-tiny.png", results)
    draw_predictions(options.out / "planner-tiny-predictions.png", results)
    print("\n".join(lines))


def result_of(kept: Mapping[str, Any]) -> Result:
    """A result as it was kept."""
    return Result(**{field.name: kept[field.name] for field in fields(Result)})


def progress_line(shown: Result) -> str:
    """One instance in a line."""
    return (
        f"  {shown.instance}: grid's best {shown.best:.2f} s, planner {shown.planner:.2f} s "
        f"({100 * shown.regret:+.1f} %), best candidate {100 * shown.model_regret:+.1f} %, "
        f"predicted {shown.predicted:.2f}, floor {shown.floor:.2f}"
    )


if __name__ == "__main__":
    main()
