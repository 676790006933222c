"""Random plans of the paper's cluster: what the model predicts against what the simulator sees.

    python experiments/planner_random.py [--plans 104] [--counted 4] [--part 4] [--set KEY=VALUE] [--minutes 12]

96 H800 and 32 H20, Qwen3-32B, five tasks, batches of 512; or with `--part 4` a quarter of the devices and of the batch,
where a simulation takes a quarter of the time. A plan is drawn from the grid: the trainer (pool, devices), a size of
engine or none for each pool, and for each task one engine group or all of them, each uniformly; most are bad plans, and
none is taken twice. Each is predicted by the model and simulated once, two steps of warm-up and `--counted` behind
them, under seed 0. Kendall's tau and errors are printed, by what the step waits for; "beside it" is the median error
once the median ratio, the luck of the batches that all plans share, is divided out; "ranked right" is the part of the
pairs of plans whose simulated steps differ by more than 5 % that the model ranks alike. For the worst plans it is said
what the simulation had: groups that were stale, and tokens of a trained trajectory. Writes planner-random.json after
each plan (run it again to go on) and planner-random.png.
"""

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from rollart import api
from rollart.domain.errors import RollArtError
from rollart.domain.job import Job
from rollart.domain.plan import Plan
from rollart.domain.planning import Objective
from rollart.domain.trajectory import End
from rollart.planning.pieces import Pieces
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, plain_logarithmic, save
from rollart.runlog.statistics import RunStatistics
from rollart.sched.placement.candidates import candidate_of
from rollart.sched.placement.grid import PlanGrid
from rollart.sched.placement.ground import ground_of
from rollart.sched.placement.problem import Problem, ProblemData
from rollart.sched.placement.trial import Trials
from rollart.sim import simulate

SCENARIO = Path(__file__).parent / "scenarios/paper-128.yaml"
STAGES = ("rollout", "training", "weights")
MATTERS = 0.05
"""Relative difference of two simulated steps from which on it matters which plan is chosen."""


def measured(data: ProblemData, plan: Plan, counted_steps: int) -> dict[str, Any]:
    """Predicted and simulated step time of a plan, and what may explain the difference."""
    problem, found = data.problem, {**described(plan), **predicted(data, plan)}
    began_s = time.perf_counter()
    trial = Trials(job=problem.job, counted_steps=counted_steps, counted_trajectories=0).of(plan, 0)
    try:
        statistics = simulate(trial.job, problem.workload).statistics
    except RollArtError as error:
        return {**found, "failure": str(error)}
    lengths = np.concatenate([demand.lengths for demand in data.demands(plan.policy)])
    return {
        **found,
        **simulated(statistics),
        "sampled_tokens": float(lengths.mean()),
        "simulate_wall_s": time.perf_counter() - began_s,
    }


def predicted(data: ProblemData, plan: Plan) -> dict[str, Any]:
    """What the model expects of a plan; a step of None where it expects that nothing goes on."""
    began_s = time.perf_counter()
    expected = candidate_of(data.of_plan(plan), plan, Objective.STEP_TIME)
    return {
        "predicted_s": None if expected is None else expected.value,
        "waits_for": None if expected is None else expected.predicted.bottleneck,
        "predict_wall_s": time.perf_counter() - began_s,
    }


def distinct(grid: PlanGrid, generator: np.random.Generator, count: int) -> Iterator[tuple[int, Plan]]:
    """So many different plans, each with its place among all that were drawn."""
    seen: set[str] = set()
    for number in itertools.count():
        plan = grid.drawn(generator)
        if str(described(plan)) not in seen:
            seen.add(str(described(plan)))
            yield number, plan
        if len(seen) == count:
            return


def part_of(job: Job, part: int) -> Job:
    """The job with a part of the devices of each pool and of the batch; its own plan may no longer fit."""
    pools = {name: replace(pool, count=pool.count // part) for name, pool in job.cluster.pools.items()}
    training = replace(job.training, batch_size=job.training.batch_size // part)
    return replace(job, cluster=replace(job.cluster, pools=pools), training=training)


def described(plan: Plan) -> dict[str, Any]:
    """Who trains, who rolls out, and where each task goes."""
    placement = plan.placement
    return {
        "trainer": f"{placement.trainer.devices} {placement.trainer.pool}",
        "engines": [f"{group.engines} {group.name}" for group in placement.engine_groups],
        "affinity": {task: list(names) for task, names in placement.affinity.items()},
    }


def simulated(statistics: RunStatistics) -> dict[str, Any]:
    """Mean step time of the counted steps, and what the whole run wasted."""
    steps = statistics.counted_steps
    ended = sum(statistics.ends.values())
    return {
        "simulated_s": fmean(step.duration_s for step in steps),
        "steps_s": [step.duration_s for step in steps],
        "trained_tokens": sum(step.tokens for step in steps) / sum(step.trajectories for step in steps),
        "stale": statistics.ends.get(End.STALE, 0) / max(1, ended),
        "recomputed_device_s": None if statistics.waste is None else statistics.waste.recomputed,
        "preempted_device_s": None if statistics.waste is None else statistics.waste.preempted,
    }


def pairs(results: Mapping[str, Mapping[str, Any]], stage: str = "") -> list[tuple[float, float]]:
    """Predicted and simulated, of the plans that wait for a stage, or all."""
    return [
        (one["predicted_s"], one["simulated_s"])
        for one in results.values()
        if one.get("predicted_s") and "simulated_s" in one and stage in ("", one["waits_for"])
    ]


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Rank correlation and errors, over all plans and by what they wait for."""
    found: dict[str, Any] = {"plans": len(results), "failed": sum("simulated_s" not in one for one in results.values())}
    found["unpredicted"] = sum(not one.get("predicted_s") for one in results.values())
    for stage in ("", *STAGES):
        ratios = [predicted / simulated for predicted, simulated in pairs(results, stage)]
        if len(ratios) < 2:
            continue
        predicted, seen = zip(*pairs(results, stage), strict=True)
        errors = [abs(ratio - 1.0) for ratio in ratios]
        found[stage or "all"] = {
            "plans": len(ratios),
            "kendall": float(kendalltau(predicted, seen).statistic),
            "median_error": float(np.median(errors)),
            "p90_error": float(np.quantile(errors, 0.9)),
            "worst_error": max(errors),
            "median_ratio": float(np.median(ratios)),
            "median_error_beside_it": float(np.median(np.abs(np.array(ratios) / np.median(ratios) - 1.0))),
            "ranked_right": ranked_right(pairs(results, stage)),
        }
    return found


def ranked_right(found: Sequence[tuple[float, float]]) -> float | None:
    """Of the pairs of plans whose simulated steps differ by enough to matter, the part that the model ranks alike."""
    apart = [
        (one[0] - other[0]) * (one[1] - other[1]) > 0
        for one, other in itertools.combinations(found, 2)
        if abs(one[1] - other[1]) > MATTERS * min(one[1], other[1])
    ]
    return fmean(apart) if apart else None


def summary_lines(found: Mapping[str, Any]) -> list[str]:
    """The summary as a table."""
    lines = [
        f"{found['plans']} plans, {found['failed']} not simulated, {found['unpredicted']} not predicted",
        "",
        "| waits for | plans | Kendall's tau | median error | 90th percentile | worst | "
        "predicted / simulated | beside it | ranked right |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for stage in ("all", *STAGES):
        if stage in found:
            one = found[stage]
            lines.append(
                f"| {stage} | {one['plans']} | {one['kendall']:.3f} | {one['median_error']:.1%} | "
                f"{one['p90_error']:.1%} | {one['worst_error']:.1%} | {one['median_ratio']:.3f} | "
                f"{one['median_error_beside_it']:.1%} | "
                f"{'-' if one['ranked_right'] is None else format(one['ranked_right'], '.0%')} |"
            )
    return lines


def worst_lines(results: Mapping[str, Mapping[str, Any]], count: int = 8) -> list[str]:
    """The plans that the model is farthest off for."""
    both = [one for one in results.values() if one.get("predicted_s") and "simulated_s" in one]
    both.sort(key=lambda one: -abs(np.log(one["predicted_s"] / one["simulated_s"])))
    lines = [
        "| trains | rolls out | predicted | simulated | ratio | stale | trained tokens over the sample's |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in both[:count]:
        lines.append(
            f"| {one['trainer']} | {', '.join(one['engines'])} | {one['predicted_s']:.0f} | {one['simulated_s']:.0f} | "
            f"{one['predicted_s'] / one['simulated_s']:.2f} | {one['stale']:.1%} | "
            f"{one['trained_tokens'] / one['sampled_tokens']:.2f} |"
        )
    return lines


def draw(path: Path, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Predicted against simulated, coloured by what the step waits for."""
    found = summary(results)
    figure, axes = new_figure(
        "Random plans: predicted against simulated step time"
        + (f" (Kendall's tau {found['all']['kendall']:.2f})" if "all" in found else ""),
        height_px=650,
    )
    for place, stage in enumerate(STAGES):
        own = pairs(results, stage)
        if own:
            predicted, seen = zip(*own, strict=True)
            axes.plot(seen, predicted, "o", markersize=5, color=SERIES_COLOURS[place], label=f"waits for {stage}")
    every: Sequence[float] = [value for pair in pairs(results) for value in pair] or [1.0, 2.0]
    axes.plot((min(every), max(every)), (min(every), max(every)), color="black", linewidth=0.8)
    axes.legend(frameon=False)
    label(axes, "simulated step time, s", "predicted step time, s", grid="both")
    plain_logarithmic(axes)
    save(figure, path)


def main() -> None:
    """Draw plans, predict, simulate, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=104)
    parser.add_argument("--counted", type=int, default=4, help="counted steps of a simulation")
    parser.add_argument("--part", type=int, default=1, help="divides the devices of each pool and the batch")
    parser.add_argument("--seed", type=int, default=0, help="of the plans that are drawn")
    parser.add_argument("--again", action="store_true", help="predict again what is there, with the model as it is now")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--name", default="planner-random", help="of the files that are written")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, then begin nothing new")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    scenario = api.load_scenario(SCENARIO, options.settings)
    problem = Problem(job=part_of(scenario.job(), options.part), workload=scenario.workload())
    data = ProblemData(problem)
    config = {
        "seed": options.seed,
        "counted_steps": options.counted,
        "part": options.part,
        "settings": options.settings,
    }
    file = options.out / f"{options.name}.json"
    pieces = Pieces(file, config, version=api.code_version(), minutes=options.minutes)
    generator, grid = np.random.default_rng(options.seed), ground_of(problem.job, problem.workload).grid
    drawn = dict(distinct(grid, generator, options.plans))
    for old in [key for key in pieces.results if int(key) not in drawn]:
        del pieces.results[old]
    for number, plan in drawn.items():
        if options.again and str(number) in pieces.results:
            pieces.put(str(number), {**pieces.results[str(number)], **predicted(data, plan)})
        if pieces.wanted(str(number)):
            pieces.put(str(number), measured(data, plan, options.counted))
    found = summary(pieces.results)
    pieces.write(found)
    draw(options.out / f"{options.name}.png", pieces.results)
    print("\n".join([*summary_lines(found), "", *worst_lines(pieces.results)]))


if __name__ == "__main__":
    main()
