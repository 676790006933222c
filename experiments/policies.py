"""Published policies on the RollArt paper's clusters, in ratios beside those that the paper reports.

    python experiments/policies.py [--seeds 3] [--steps 8] [--workers 2] [--out experiments/results]

Qwen3-32B, five tasks; the baselines on 128 H800, RollArt on 96 H800 and 32 H20, as in `experiments/scenarios`. All
cases of a seed meet the same luck, so a ratio is taken seed by seed; its mean and range over the seeds are shown.
Writes policies.json (every run, with configuration and code version), policies.png and policies-ratios.png.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rollart import api
from rollart.report.figures import draw_policies, policy_bars
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, save
from rollart.report.output import write_text

SCENARIOS = Path(__file__).parent / "scenarios"
KEPT = (
    "step_time_s",
    "throughput",
    "stages_s",
    "busy_s",
    "waste",
    "trajectories",
    "staleness",
    "utilization",
    "cost_per_step",
    "critical_path",
)
"""What is kept of a run's summary."""

Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario file with the settings that differ."""

    name: str
    scenario: str
    settings: tuple[str, ...]

    def run(self, seed: int, steps: int) -> dict[str, Any]:
        """Simulate it; the kept part of its summary."""
        scenario = api.load_scenario(SCENARIOS / f"{self.scenario}.yaml", self.settings)
        summary = api.simulate(scenario.with_changes(seed=seed, steps=steps)).summary
        return {key: summary[key] for key in KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of the paper: how it is measured here, and what the paper says."""

    name: str
    measure: Callable[[Mapping[str, Summary]], float]
    """From the summaries of one seed, by case."""
    paper: tuple[float, float]
    """Lowest and highest; equal for a single figure."""
    standing: str
    """given: the paper says so; derived: arithmetic on what it says."""


def _alpha(bound: int) -> Case:
    policy = f"policy={{preset: rollart, staleness: {{bound: {bound}}}}}"
    return Case(name=f"alpha {bound}", scenario="paper-128", settings=(policy,))


H20_ONLY = (
    "policy=rollart",
    "cluster.pools.h800.count=32",
    "cluster.pools.h20.count=208",
    "placement.engines=[{name: h20, pool: h20, engines: 52, tensor_parallel: 4}]",
    "placement.affinity={default: [h20]}",
)
CASES = (
    Case(name="sync", scenario="paper-128-h800", settings=("policy=sync",)),
    Case(name="sync+", scenario="paper-128-h800", settings=("policy=sync+",)),
    Case(name="one-off", scenario="paper-128-h800", settings=("policy=one-off",)),
    Case(name="areal", scenario="paper-128-h800", settings=("policy=areal",)),
    Case(name="rollart", scenario="paper-128", settings=("policy=rollart",)),
    *map(_alpha, (2, 3, 4, 6)),
    Case(
        name="64 H800 + 24 H20",
        scenario="paper-128",
        settings=("policy=rollart", "cluster.pools.h20.count=24", "placement.engines.h20.engines=6"),
    ),
    Case(
        name="72 H800",
        scenario="paper-128-h800",
        settings=("policy=rollart", "cluster.pools.h800.count=104", "placement.engines.h800.engines=18"),
    ),
    Case(name="208 H20", scenario="paper-128", settings=H20_ONLY),
)
"""The last three roll out on devices of about equal cost, beside 32 H800 that train."""
POLICIES = ("sync", "sync+", "one-off", "areal", "rollart")


def _faster(better: str, worse: str) -> Callable[[Mapping[str, Summary]], float]:
    """Step time of `worse` in step times of `better`."""
    return lambda runs: float(runs[worse]["step_time_s"]["mean"] / runs[better]["step_time_s"]["mean"])


def _more(better: str, worse: str) -> Callable[[Mapping[str, Summary]], float]:
    """Throughput of `better` in throughputs of `worse`."""
    return lambda runs: float(runs[better]["throughput"]["tokens_per_s"] / runs[worse]["throughput"]["tokens_per_s"])


def _best_alpha(runs: Mapping[str, Summary]) -> float:
    """Step time with alpha 1 in the shortest step time of alpha 1 to 6."""
    times = [runs[name]["step_time_s"]["mean"] for name in ("rollart", *(f"alpha {n}" for n in (2, 3, 4, 6)))]
    return float(times[0] / min(times))


def _suspended_s(runs: Mapping[str, Summary]) -> float:
    """Seconds a step in which RollArt's engines stand still for new weights."""
    return float(runs["rollart"]["busy_s"]["weight_sync_exposed"])


FIGURES = (
    Figure(
        name="step time, sync+ / rollart", measure=_faster("rollart", "sync+"), paper=(2.05, 2.05), standing="given"
    ),
    Figure(
        name="step time, one-off / rollart", measure=_faster("rollart", "one-off"), paper=(1.35, 1.35), standing="given"
    ),
    Figure(
        name="step time, areal / rollart", measure=_faster("rollart", "areal"), paper=(1.31, 1.31), standing="given"
    ),
    Figure(
        name="step time, sync+ / one-off", measure=_faster("one-off", "sync+"), paper=(1.52, 1.52), standing="given"
    ),
    Figure(
        name="step time, one-off / areal",
        measure=_faster("areal", "one-off"),
        paper=(1.35 / 1.31, 1.35 / 1.31),
        standing="derived",
    ),
    Figure(name="throughput, sync+ / sync", measure=_more("sync+", "sync"), paper=(1.40, 2.40), standing="given"),
    Figure(name="throughput, one-off / sync+", measure=_more("one-off", "sync+"), paper=(1.31, 1.47), standing="given"),
    Figure(name="throughput, areal / one-off", measure=_more("areal", "one-off"), paper=(1.03, 1.06), standing="given"),
    Figure(name="throughput, rollart / areal", measure=_more("rollart", "areal"), paper=(1.22, 1.36), standing="given"),
    Figure(name="throughput, rollart / sync", measure=_more("rollart", "sync"), paper=(2.65, 4.58), standing="given"),
    Figure(name="step time, alpha 1 / best of 1 to 6", measure=_best_alpha, paper=(1.14, 1.14), standing="given"),
    Figure(
        name="step time, 72 H800 / 64 H800 + 24 H20",
        measure=_faster("64 H800 + 24 H20", "72 H800"),
        paper=(1.12, 1.37),
        standing="given",
    ),
    Figure(
        name="step time, 208 H20 / 64 H800 + 24 H20",
        measure=_faster("64 H800 + 24 H20", "208 H20"),
        paper=(1.30, 1.68),
        standing="given",
    ),
    Figure(name="exposed pull of weights, s", measure=_suspended_s, paper=(9.6, 9.6), standing="given"),
)
"""Step times of 32B; the paper's throughputs are ranges over three sizes of model."""


def figure_rows(runs: Mapping[int, Mapping[str, Summary]]) -> list[dict[str, Any]]:
    """Per figure: the paper's, and mean, lowest and highest over the seeds of `runs` (seed -> case -> summary)."""
    rows = []
    for figure in FIGURES:
        values = [figure.measure(of_seed) for of_seed in runs.values()]
        rows.append(
            {
                "figure": figure.name,
                "paper": list(figure.paper),
                "standing": figure.standing,
                "mean": fmean(values),
                "lowest": min(values),
                "highest": max(values),
            }
        )
    return rows


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as a Markdown table."""
    lines = ["| figure | paper | | here | over the seeds |", "|---|---|---|---|---|"]
    for row in rows:
        low, high = row["paper"]
        paper = f"{low:.2f}" if low == high else f"{low:.2f}-{high:.2f}"
        spread = f"{row['lowest']:.2f}-{row['highest']:.2f}"
        lines.append(f"| {row['figure']} | {paper} | {row['standing']} | {row['mean']:.2f} | {spread} |")
    return lines


def draw_ratios(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """The paper's figures as bars or ticks, ours as dots with their range over the seeds."""
    ratios = [row for row in rows if not row["figure"].endswith(" s")]
    figure, axes = new_figure("Ratios: the paper (grey), simulated (dots, with their range over seeds)", height_px=620)
    for place, row in enumerate(ratios):
        low, high = row["paper"]
        axes.barh(place, max(high - low, 0.03), 0.62, min(low, high - 0.015), color="#BBBBBB")
        axes.plot((row["lowest"], row["highest"]), (place, place), color=SERIES_COLOURS[0], linewidth=2)
        axes.plot(row["mean"], place, "o", color=SERIES_COLOURS[0])
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(ratios)), [row["figure"] for row in ratios])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    label(axes, "ratio", "", grid="x")
    save(figure, path)


def simulate_all(seeds: Sequence[int], steps: int, workers: int) -> dict[int, dict[str, Summary]]:
    """All cases under all seeds, by seed and case; progress on stderr."""
    runs: dict[int, dict[str, Summary]] = {seed: {} for seed in seeds}
    with ProcessPoolExecutor(workers) as pool:
        jobs = {pool.submit(case.run, seed, steps): (seed, case) for seed in seeds for case in CASES}
        for done, job in enumerate(as_completed(jobs), start=1):
            seed, case = jobs[job]
            runs[seed][case.name] = job.result()
            step_s = runs[seed][case.name]["step_time_s"]["mean"]
            print(f"[{done}/{len(jobs)}] {case.name}, seed {seed}: {step_s:.1f} s a step", file=sys.stderr)
    return {seed: {case.name: runs[seed][case.name] for case in CASES} for seed in seeds}


def main() -> None:
    """Simulate, write the files, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0, 1, ... of each case")
    parser.add_argument("--steps", type=int, default=8, help="training steps; the first warms up")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    runs = simulate_all(range(options.seeds), options.steps, options.workers)
    rows = figure_rows(runs)
    result = {
        "code_version": api.code_version(),
        "seeds": options.seeds,
        "steps": options.steps,
        "cases": [asdict(case) for case in CASES],
        "figures": rows,
        "runs": runs,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "policies.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    bars = policy_bars({name: [of_seed[name] for of_seed in runs.values()] for name in POLICIES})
    draw_policies(options.out / "policies.png", bars, title="Qwen3-32B, five tasks: mean step time by policy")
    draw_ratios(options.out / "policies-ratios.png", rows)
    print("\n".join(table_lines(rows)))
    print(f"wrote {options.out}/policies.json, policies.png, policies-ratios.png", file=sys.stderr)


if __name__ == "__main__":
    main()
