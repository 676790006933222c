"""Trajectories: what a sample of them did from reset to score."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from rollart.report.figures.canvas import STAGE_COLOURS, label, new_figure, note_empty, save
from rollart.report.spans import Span
from rollart.report.thinning import thinned_spans
from rollart.runlog.header import RunHeader
from rollart.runlog.schema import Record
from rollart.runlog.stages import Stage

MOST_SPANS = 30_000
"""Spans kept at most; more than a figure can show."""

_PARTS = {
    "ResetEnvironment": ("reset", "#F0E442"),
    "GenerateTurn": ("generate", STAGE_COLOURS[Stage.GENERATION]),
    "StepEnvironment": ("step", STAGE_COLOURS[Stage.ENVIRONMENT]),
    "ScoreTrajectory": ("score", STAGE_COLOURS[Stage.REWARD]),
}
_WAIT = ("wait", "#CCCCCC")
_TRAINING = ("training step", "#D9F0E8")


def draw_gantt(
    path: Path,
    header: RunHeader,
    records: Iterable[tuple[int, float, Record]],
    *,
    steps: int = 3,
    trajectories: int = 40,
) -> None:
    """The first `steps` steps of evenly sampled trajectories, in order of their begin. Raises OutputError."""
    shown = thinned_spans(records, steps=steps, limit=MOST_SPANS).spans
    sample = _sample(shown, trajectories)
    height_px = 200 + 18 * max(len(sample), 10)
    figure, axes = new_figure(f"{header.scenario}, {header.policy}: sampled trajectories", height_px=height_px)
    for span in shown:
        if span.what == "TrainBatch":
            axes.axvspan(span.begin_s, span.end_s, color=_TRAINING[1], zorder=0)
    for row, own in enumerate(sample):
        _draw_row(axes, row, own)
    if not sample:
        note_empty(axes, "no trajectory was begun")
    axes.set_yticks(range(len(sample)), [_name(own) for own in sample], fontsize=8)
    axes.set_ylim(len(sample) - 0.4, -0.6)
    axes.margins(x=0.01)
    label(axes, "time (s)", "trajectory", grid="x")
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in (*_PARTS.values(), _WAIT, _TRAINING)],
        loc="outside right upper",
        frameon=False,
        fontsize=11,
    )
    save(figure, path)


def _sample(shown: Iterable[Span], count: int) -> list[list[Span]]:
    """Spans of evenly spread trajectories, in order of begin."""
    own: dict[int, list[Span]] = {}
    for span in shown:
        if span.trajectory is not None and span.what in _PARTS:
            own.setdefault(span.trajectory, []).append(span)
    rows = sorted((sorted(each, key=lambda span: span.begin_s) for each in own.values()), key=lambda r: r[0].begin_s)
    if len(rows) <= count:
        return rows
    return [rows[place * len(rows) // count] for place in range(count)]


def _draw_row(axes: Axes, row: int, own: Sequence[Span]) -> None:
    begin_s, end_s = own[0].begin_s, max(span.end_s for span in own)
    axes.barh(row, end_s - begin_s, 0.3, begin_s, color=_WAIT[1], zorder=1)
    for what, (_, colour) in _PARTS.items():
        parts = [(span.begin_s, span.duration_s) for span in own if span.what == what]
        axes.broken_barh(parts, (row - 0.38, 0.76), facecolors=colour, zorder=2)


def _name(own: Sequence[Span]) -> str:
    return f"{own[0].task or ''} {own[0].trajectory}".strip()
