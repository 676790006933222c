"""Tables of run summaries, and what several runs say together."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from rollart.cli.present import number, show_table

Summary = Mapping[str, Any]

T95 = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
)
"""Two-sided 95 % points of Student's t for 1 to 19 degrees of freedom."""
Z95 = 1.96


def show_summary(summary: Summary) -> None:
    """One run as a table of its figures."""
    title = f"{summary['policy']}, {summary['steps']} steps, seed {summary['seed']}"
    show_table(title, ("figure", "value"), _rows(summary))


def show_comparison(comparison: Sequence[Mapping[str, Any]]) -> None:
    """Policies side by side, each with its mean over the seeds."""
    columns = ("policy", "runs", "step s", "+/- 95 %", "times the fastest", "tokens/s", "cost a step")
    fastest = min((row["step_time_s"]["mean"] for row in comparison), default=math.nan)
    rows = [
        (
            row["policy"],
            str(row["runs"]),
            number(row["step_time_s"]["mean"], 4),
            number(row["step_time_s"]["half_width_95"]),
            f"{row['step_time_s']['mean'] / fastest:.2f}" if fastest > 0 else "-",
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


def _mean_and_interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and half width of its 95 % interval (Student's t); no width for a single run."""
    if len(values) < 2:
        return {"mean": fmean(values), "half_width_95": None}
    freedom = len(values) - 1
    factor = T95[freedom - 1] if freedom <= len(T95) else Z95
    return {"mean": fmean(values), "half_width_95": factor * stdev(values) / math.sqrt(len(values))}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    step = summary["step_time_s"]
    yield "step time, s: mean (p50, p90)", f"{number(step['mean'], 4)} ({number(step['p50'])}, {number(step['p90'])})"
    for key, text in (("tokens_per_s", "tokens/s"), ("trajectories_per_s", "trajectories/s")):
        yield text, number(summary["throughput"][key])
    for stage, seconds in summary["stages_s"].items():
        yield f"  {stage.replace('_', ' ')}, s of the critical path", number(seconds)
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
