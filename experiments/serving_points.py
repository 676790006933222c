"""Serving points measured by others, in a closed loop: how far off time per output token and first token are.

    python experiments/serving_points.py POINTS [--all] [--costs compact] [--out experiments/results]

POINTS is a CSV with a line a point: model, system, backend, split, lengths, concurrency, and the measured times in ms.
A sample of the points is run unless --all is given. Per group (model, backend and its version):

- blind: nothing but the cost model and its host time;
- one constant: host time an iteration, chosen on the even points of the group and scored on the odd ones.

What the harness of a group did is not in the file: `serving_harness.py` says what is taken for it, and why. Writes
serving-points.json (every point) and serving-points.png. Points off by more than three times the median of their group
are named.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from serving_harness import HARNESS, Harness, Point, read_points

from rollart import api
from rollart.catalog.load import devices, models
from rollart.costs.host import HostTime
from rollart.domain.errors import RollArtError
from rollart.loadtest.closed_loop import Load, keep_in_flight
from rollart.loadtest.cost_source import costs_from, host_of
from rollart.loadtest.deployment import Deployment
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, save
from rollart.report.output import write_text

DENSE = ("Qwen3-32B", "Llama-3.1-8B", "Llama-3.1-70B")
REQUESTS_IN_FLIGHT_TIMES = 10
"""Requests of a point per one in flight, as load generators take by default; the first wave counts."""
STEP_S = 1e-3
"""Second host time that a fit tries; the answer in between is taken as linear, then simulated."""
SAMPLE_EVERY = 5
ODD_TIMES = 3.0


def host_before(point: Point) -> HostTime:
    """Host time of a point before any fit."""
    return host_of(point.backend, async_scheduling=point.async_scheduling)


def run_point(point: Point, costs: str, iteration_s: float | None) -> tuple[float, float]:
    """Mean first token and mean time per output token, in ms."""
    host = None if iteration_s is None else host_before(point)._replace(iteration_s=iteration_s)
    taken = HARNESS.get(point.harness, Harness())
    deployment = Deployment(
        model=models()[point.model],
        device=devices()[point.device],
        tensor_parallel=point.tp,
        precision=point.precision,
        kv_dtype=taken.kv_dtype,
        max_num_batched_tokens=taken.budget(point),
        max_num_seqs=max(256, point.concurrency),
        scheduler="vllm" if taken.mixes else point.backend,
        async_scheduling=point.async_scheduling,
        costs_of=costs_from(costs, scheduler=point.backend, async_scheduling=point.async_scheduling, host=host),
    )
    load = Load(
        concurrency=point.concurrency,
        input_tokens=point.input_tokens,
        output_tokens=point.output_tokens,
        requests=REQUESTS_IN_FLIGHT_TIMES * point.concurrency,
        length_range=taken.length_range,
    )
    met = keep_in_flight(load, deployment.engines()).latencies
    gaps = [gap for latency in met if (gap := latency.per_token_s) is not None]
    return 1e3 * fmean(latency.first_token_s for latency in met), 1e3 * fmean(gaps)


def attempt(job: tuple[Point, float | None], costs: str) -> tuple[float, float] | str:
    """The point's times, or why it cannot be simulated."""
    try:
        return run_point(job[0], costs, job[1])
    except RollArtError as error:
        return str(error)


def absolute_pct(simulated: float, measured: float) -> float:
    """Absolute error in percent."""
    return abs(100.0 * (simulated / measured - 1.0))


def chosen_extra_s(points: Sequence[Point], blind: Sequence[float], slower: Sequence[float], base_s: float) -> float:
    """Host time beyond the blind one with the least median error, by linear interpolation; 0 to 8 ms in all."""

    def error(extra_s: float) -> float:
        share = extra_s / STEP_S
        return median(
            absolute_pct(first + share * (second - first), point.tpot_ms)
            for point, first, second in zip(points, blind, slower, strict=True)
        )

    return min((step * 5e-5 - base_s for step in range(161)), key=error)


def score(group: str, points: Sequence[Point], costs: str, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Blind errors of a group, and with the constant of its first half on its second."""
    run = partial(attempt, costs=costs)
    answers = list(pool.map(run, [(point, None) for point in points]))
    refused = {p.name: answer for p, answer in zip(points, answers, strict=True) if isinstance(answer, str)}
    pairs = [(p, answer) for p, answer in zip(points, answers, strict=True) if not isinstance(answer, str)]
    result: dict[str, Any] = {"group": group, "points": len(pairs), "refused": refused}
    if not pairs:
        return result
    result["rows"] = [
        {**asdict(p), "name": p.name, "simulated_ttft_ms": first, "simulated_tpot_ms": gap} for p, (first, gap) in pairs
    ]
    result["tpot_pct"] = median(absolute_pct(gap, p.tpot_ms) for p, (_, gap) in pairs)
    result["tpot_bias_pct"] = median(100 * (gap / p.tpot_ms - 1) for p, (_, gap) in pairs)
    result["ttft_pct"] = median(absolute_pct(first, p.ttft_ms) for p, (first, _) in pairs)
    result["odd"] = odd_rows(result["rows"], result["tpot_pct"])
    if len(pairs) >= 4:
        result |= fitted(pairs, run, pool)
    return result


def fitted(pairs: Sequence[tuple[Point, tuple[float, float]]], run: Any, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """One constant of host time, chosen on every other point and scored on the rest."""
    train, test = pairs[::2], pairs[1::2]
    base_s = host_before(train[0][0]).iteration_s
    slower = list(pool.map(run, [(point, base_s + STEP_S) for point, _ in train]))
    extra_s = chosen_extra_s([p for p, _ in train], [a[1] for _, a in train], [answer[1] for answer in slower], base_s)
    scored = list(pool.map(run, [(point, base_s + extra_s) for point, _ in test]))
    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "model": p.model,
            "tpot_pct": absolute_pct(a[1], p.tpot_ms),
            "ttft_pct": absolute_pct(a[0], p.ttft_ms),
        }
        for a, (p, _) in zip(scored, test, strict=True)
    ]
    return {
        "host_ms": 1e3 * (base_s + extra_s),
        "fitted_on": len(train),
        "scored": rows,
        "fitted_tpot_pct": median(row["tpot_pct"] for row in rows),
        "fitted_ttft_pct": median(row["ttft_pct"] for row in rows),
    }


def odd_rows(rows: Iterable[dict[str, Any]], typical_pct: float) -> list[str]:
    """Points far from the rest of their group, with both times per output token."""
    return [
        f"{row['name']} (line {row['number']}): {row['simulated_tpot_ms']:.1f} ms, measured {row['tpot_ms']:.1f} ms"
        for row in rows
        if absolute_pct(row["simulated_tpot_ms"], row["tpot_ms"]) > max(ODD_TIMES * typical_pct, 10.0)
    ]


def draw(path: Path, results: Sequence[dict[str, Any]]) -> None:
    """Simulated over measured time per output token, all points."""
    figure, axes = new_figure("Time per output token of serving points: simulated over measured", height_px=700)
    for result, colour in zip(results, SERIES_COLOURS * 3, strict=False):
        rows = result.get("rows", [])
        ratios = [row["simulated_tpot_ms"] / row["tpot_ms"] for row in rows]
        axes.plot([row["tpot_ms"] for row in rows], ratios, "o", color=colour, label=result["group"], alpha=0.7)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.legend(frameon=False, fontsize=8)
    label(axes, "measured time per output token (ms)", "simulated / measured", grid="both")
    save(figure, path)


def main() -> None:
    """Run the points, write the files, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path)
    parser.add_argument("--all", action="store_true", help=f"every point, not one of {SAMPLE_EVERY}")
    parser.add_argument("--costs", default="compact", help="roofline, compact or tables")
    parser.add_argument("--group", default="", help="only groups whose name holds this")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    points, apart = read_points(options.points)
    groups: dict[str, list[Point]] = {}
    for point in points:
        if options.group in point.group:
            groups.setdefault(point.group, []).append(point)
    results = []
    with ProcessPoolExecutor(options.workers) as pool:
        for group, members in groups.items():
            chosen = members if options.all or len(members) < 12 else members[::SAMPLE_EVERY]
            results.append(score(group, chosen, options.costs, pool))
            print(f"{group}: {len(chosen)} of {len(members)} points", file=sys.stderr)
    show(results, apart)
    options.out.mkdir(parents=True, exist_ok=True)
    result = {"code_version": api.code_version(), "costs": options.costs, "all": options.all, "groups": results}
    write_text(options.out / "serving-points.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    draw(options.out / "serving-points.png", results)


def show(results: Sequence[dict[str, Any]], apart: int) -> None:
    """The table, then what is odd, then what was left out."""
    print("median absolute error, %; fitted: one host time, chosen on one half and scored on the other")
    print("| group | points | per token, blind | bias | fitted | host ms | first token, blind | fitted |")
    print("|---|---|---|---|---|---|---|---|")
    for row in results:
        keys = ("tpot_pct", "tpot_bias_pct", "fitted_tpot_pct", "host_ms", "ttft_pct", "fitted_ttft_pct")
        cells = [f"{row[key]:.1f}" if key in row else "-" for key in keys]
        print(f"| {row['group']} | {row['points']} | {' | '.join(cells)} |")
    dense = [row for result in results for row in result.get("rows", ()) if row["model"] in DENSE]
    if dense:
        gap = median(absolute_pct(row["simulated_tpot_ms"], row["tpot_ms"]) for row in dense)
        first = median(absolute_pct(row["simulated_ttft_ms"], row["ttft_ms"]) for row in dense)
        scored = [row for result in results for row in result.get("scored", ()) if row["model"] in DENSE]
        fitted_gap, fitted_first = (
            f"{median(row[key] for row in scored):.1f}" if scored else "-" for key in ("tpot_pct", "ttft_pct")
        )
        print(f"| all dense models | {len(dense)} | {gap:.1f} | - | {fitted_gap} | - | {first:.1f} | {fitted_first} |")
    for line in (line for row in results for line in row.get("odd", ())):
        print(f"odd: {line}")
    for row in results:
        for reason, names in Counter(row["refused"].values()).items():
            print(f"refused: {names} points of {row['group']}: {reason}")
    print(f"left out: {apart} points of engines that prefill and decode apart")


if __name__ == "__main__":
    main()
