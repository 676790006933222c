"""Traces: what the contexts of a sample of trajectories are made of, token by token."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from rollart.report.figures.canvas import STAGE_COLOURS, label, new_figure, note_empty, save
from rollart.runlog.stages import Stage
from rollart.workload.selection import longest_tokens
from rollart.workload.trace import TraceTrajectory

_PROMPT = ("prompt", "#999999")
_OBSERVATION = ("observation", STAGE_COLOURS[Stage.ENVIRONMENT])
_OUTPUT = ("output", STAGE_COLOURS[Stage.GENERATION])
_LOST = ("lost from the context", "#D55E00")
_ROW_PX = 18


def draw_strips(path: Path, sample: Sequence[TraceTrajectory], title: str) -> None:
    """One row a trajectory, shortest first: its prompt, then observation and output of each turn, end to end."""
    rows = sorted(sample, key=longest_tokens)
    figure, axes = new_figure(title, height_px=200 + _ROW_PX * max(len(rows), 10))
    cuts = 0
    for row, trajectory in enumerate(rows):
        cuts += _draw_row(axes, row, trajectory)
    if not rows:
        note_empty(axes, "no trajectory has a turn")
    axes.set_yticks(range(len(rows)), [f"{one.group} / {one.member}"[-28:] for one in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.margins(x=0.01)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    label(axes, "tokens in the order they enter the context", "group / member", grid="x")
    shown = [_PROMPT, _OBSERVATION, _OUTPUT, *([_LOST] if cuts else [])]
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in shown],
        loc="outside right upper",
        frameon=False,
        fontsize=11,
    )
    save(figure, path)


def _draw_row(axes: Axes, row: int, trajectory: TraceTrajectory) -> int:
    """Returns how often the context lost something."""
    prompt = trajectory.prompt_tokens + trajectory.turns[0].prompt_tokens
    observations: list[tuple[float, float]] = []
    outputs: list[tuple[float, float]] = []
    cuts: list[float] = []
    place, held = float(prompt), prompt
    for index, turn in enumerate(trajectory.turns):
        if index:
            if turn.kept_tokens is not None and turn.kept_tokens < held:
                cuts.append(place)
                held = turn.kept_tokens
            observations.append((place, turn.prompt_tokens))
            place += turn.prompt_tokens
            held += turn.prompt_tokens
        outputs.append((place, turn.output_tokens))
        place += turn.output_tokens
        held += turn.output_tokens
    axes.broken_barh([(0.0, prompt)], (row - 0.38, 0.76), facecolors=_PROMPT[1])
    axes.broken_barh(observations, (row - 0.38, 0.76), facecolors=_OBSERVATION[1])
    axes.broken_barh(outputs, (row - 0.38, 0.76), facecolors=_OUTPUT[1])
    axes.vlines(cuts, row - 0.48, row + 0.48, colors=_LOST[1], linewidth=2.0)
    return len(cuts)
