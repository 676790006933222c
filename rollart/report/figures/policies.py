"""Policies compared: mean step time, cut into stages, with the interval that the seeds leave."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from rollart.report.figures.canvas import STAGE_COLOURS, label, legend_beside, new_figure, note_empty, save
from rollart.report.words import stage_name
from rollart.runlog.stages import Stage

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBar:
    """One policy."""

    name: str
    stages_s: Mapping[Stage, float]
    """Mean seconds of a step along the critical path."""
    low_s: float
    high_s: float
    """Interval of the mean step time; equal to the mean where one seed was run."""

    @property
    def step_time_s(self) -> float:
        """Mean step time."""
        return math.fsum(self.stages_s.values())


def policy_bars(summaries: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[PolicyBar]:
    """Bars from the summaries of several seeds a policy; the interval is Student's, at 95 %.

    A summary without a counted step is left out, and a policy that has no other.
    """
    bars = []
    for name, runs in summaries.items():
        used = [run for run in runs if run["step_time_s"]["mean"] is not None]
        if not used:
            continue
        times = np.array([run["step_time_s"]["mean"] for run in used], dtype=np.float64)
        half_s = 0.0
        if len(times) > 1:
            quantile = float(stdtrit(len(times) - 1, 0.5 + _CONFIDENCE / 2))
            half_s = quantile * float(times.std(ddof=1)) / math.sqrt(len(times))
        mean_s = float(times.mean())
        bars.append(
            PolicyBar(
                name=name,
                stages_s={s: math.fsum(run["stages_s"][s.value] for run in used) / len(used) for s in Stage},
                low_s=mean_s - half_s,
                high_s=mean_s + half_s,
            )
        )
    return bars


def draw_policies(path: Path, bars: Sequence[PolicyBar], *, title: str = "Policies compared") -> None:
    """One stacked bar a policy with its mean above and whiskers where the interval is known. Raises OutputError."""
    figure, axes = new_figure(title)
    position = np.arange(len(bars))
    bottom = np.zeros(len(bars))
    for stage in Stage:
        seconds = np.array([bar.stages_s[stage] for bar in bars])
        if seconds.any():
            axes.bar(position, seconds, 0.6, bottom, color=STAGE_COLOURS[stage], label=stage_name(stage))
            bottom += seconds
    for place, bar in enumerate(bars):
        if bar.high_s > bar.low_s:
            below, above = bar.step_time_s - bar.low_s, bar.high_s - bar.step_time_s
            error = np.maximum([[below], [above]], 0.0)
            axes.errorbar(place, bar.step_time_s, yerr=error, color="black", capsize=6, linewidth=1.5)
        top_s = max(bar.high_s, bar.step_time_s)
        axes.annotate(f"{bar.step_time_s:.4g} s", (place, top_s), (0, 4), textcoords="offset points", ha="center")
    if not bars:
        note_empty(axes, "no policy has a counted step")
    axes.set_xticks(position, [bar.name for bar in bars])
    axes.set_ylim(0, 1.1 * max((max(bar.high_s, bar.step_time_s) for bar in bars), default=1.0))
    label(axes, "policy (whiskers: 95 % interval of the mean over seeds)", "mean step time (s)")
    legend_beside(axes, reverse=True)
    save(figure, path)
