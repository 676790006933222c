"""Tables of run summaries, and what several runs say together."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import typer

from rollart.cli.present import number, show_table

Summary = Mapping[str, Any]

CONFIDENCE = 0.95


def show_summary(summary: Summary) -> None:
    """One run as a table of its figures."""
    title = f"{summary['policy']}, {summary['steps']} steps, seed {summary['seed']}"
    show_table(title, ("figure", "value"), _rows(summary))
    for line in summary.get("critical_path", ()):
        typer.echo(line)


def show_comparison(comparison: Sequence[Mapping[str, Any]]) -> None:
    """Policies side by side, each with its mean over the seeds."""
    columns = ("policy", "runs", "step s", "+/- 95 %", "times the fastest", "tokens/s", "cost a step")
    means = [row["step_time_s"]["mean"] for row in comparison]
    fastest = min((mean for mean in means if mean), default=None)
    rows = [
        (
            row["policy"],
            str(row["runs"]),
            number(row["step_time_s"]["mean"], 4),
            number(row["step_time_s"]["half_width_95"]),
            f"{row['step_time_s']['mean'] / fastest:.2f}" if fastest and row["step_time_s"]["mean"] else "-",
            number(row["tokens_per_s"]),
            number(row["cost_per_step"]),
        )
        for row in comparison
    ]
    show_table("policies", columns, rows)


def compare_summaries(summaries: Sequence[Summary], names: Sequence[str]) -> list[dict[str, Any]]:
    """Per name, in order of appearance: runs, mean step time with its 95 % interval over runs, throughput, cost."""
    rows = []
    for name in dict.fromkeys(names):
        own = [summary for summary, of in zip(summaries, names, strict=True) if of == name]
        rows.append(
            {
                "policy": name,
                "runs": len(own),
                "step_time_s": _mean_and_interval([each["step_time_s"]["mean"] for each in own]),
                "tokens_per_s": _mean([each["throughput"]["tokens_per_s"] for each in own]),
                "cost_per_step": _mean([each["cost_per_step"] for each in own]),
            }
        )
    return rows


def write_comparison(
    folder: Path, summaries: Sequence[Summary], comparison: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Write comparison.json, and comparison.png with a bar for each name. Raises OutputError."""
    from rollart.report.figures.policies import draw_policies, policy_bars
    from rollart.report.output import write_text

    own = {name: [each for each, of in zip(summaries, names, strict=True) if of == name] for name in names}
    write_text(folder / "comparison.json", json.dumps(comparison, indent=2, allow_nan=False) + "\n")
    draw_policies(folder / "comparison.png", policy_bars(own))


def _mean_and_interval(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and half width of its 95 % interval (Student's t); no width for a single run."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return {"mean": known[0] if known else None, "half_width_95": None}
    from scipy.stats import t

    quantile = float(t.ppf(0.5 + CONFIDENCE / 2, len(known) - 1))
    return {"mean": fmean(known), "half_width_95": quantile * stdev(known) / math.sqrt(len(known))}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    step = summary["step_time_s"]
    yield "step time, s: mean (p50, p90)", f"{number(step['mean'], 4)} ({number(step['p50'])}, {number(step['p90'])})"
    for key, text in (("tokens_per_s", "tokens/s"), ("trajectories_per_s", "trajectories/s")):
        yield text, number(summary["throughput"][key])
    yield "critical path of a step, s", ""
    for stage, seconds in summary["stages_s"].items():
        yield f"  {stage.replace('_', ' ')}", number(seconds)
    ends = (f"{count:,} {end}" for end, count in summary["trajectories"].items() if count)
    yield "trajectories", "\n".join(ends)
    staleness = summary["staleness"]
    yield "staleness: mean (max)", f"{number(staleness['mean'])} ({number(staleness['max'])})"
    waste = (f"{number(seconds)} {cause}" for cause, seconds in summary["waste"].items() if seconds)
    yield "waste, device s", "\n".join(waste) or "0"
    used = (f"{number(share)} {pool}" for pool, share in summary["utilization"].items())
    yield "utilization", "\n".join(used)
    yield "KV occupancy", number(summary["kv_occupancy"])
    yield "cost per step", number(summary["cost_per_step"])
    simulator = summary.get("simulator") or {}
    if simulator:
        yield "simulated turns/s (wall s)", f"{number(simulator['turns_per_s'])} ({number(simulator['wall_s'])})"
