"""Traces: the longest context against the number of turns, one point a trajectory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rollart.report.figures.canvas import (
    SERIES_COLOURS,
    label,
    legend_beside,
    new_figure,
    note_empty,
    plain_logarithmic,
    save,
)
from rollart.workload.selection import longest_tokens
from rollart.workload.trace import TraceTrajectory

Floats = NDArray[np.float64]
_FEWEST_IN_A_BIN = 5
_MARKERS = "o^sDvPX"


def draw_tokens_against_turns(path: Path, sample: Sequence[tuple[str, Sequence[TraceTrajectory]]], title: str) -> None:
    """Points of each (task, trajectories), and a line through medians of bins of turns that double."""
    figure, axes = new_figure(title, height_px=700)
    luck = np.random.default_rng(0)
    for place, (task, trajectories) in enumerate(sample):
        turns = np.array([len(one.turns) for one in trajectories], dtype=np.float64)
        tokens = np.array([longest_tokens(one) for one in trajectories], dtype=np.float64)
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        # Turns are whole numbers: points are spread a little, or they would cover each other.
        spread = turns * np.exp(luck.uniform(-0.03, 0.03, len(turns)))
        axes.scatter(
            spread,
            tokens,
            s=14,
            alpha=0.35,
            linewidths=0,
            color=colour,
            marker=_MARKERS[place % len(_MARKERS)],
            label=task,
        )
        middles, medians = _medians(turns, tokens)
        axes.plot(middles, medians, color=colour, linewidth=2.2)
    if not sample:
        note_empty(axes, "no trajectory has a turn")
    plain_logarithmic(axes)
    label(axes, "turns of the trajectory", "longest context, its output included (tokens)", grid="both")
    legend_beside(axes)
    save(figure, path)


def _medians(turns: Floats, tokens: Floats) -> tuple[list[float], list[float]]:
    bins = np.floor(np.log2(turns) * 2.0).astype(np.int64)
    kept = [one for one in np.unique(bins) if int((bins == one).sum()) >= _FEWEST_IN_A_BIN]
    return (
        [float(np.median(turns[bins == one])) for one in kept],
        [float(np.median(tokens[bins == one])) for one in kept],
    )
