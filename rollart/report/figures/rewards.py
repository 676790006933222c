"""Rewards: what each task earned at every training step."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, note_empty, save


def draw_rewards(path: Path, title: str, rewards: Sequence[Mapping[str, float]]) -> None:
    """A line for each task; `rewards` has the mean by task of every step. Raises OutputError."""
    figure, axes = new_figure(title, height_px=450)
    for place, task in enumerate(rewards[0] if rewards else ()):
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        axes.plot([step[task] for step in rewards], color=colour, label=task, linewidth=1.5)
    if rewards:
        axes.legend(frameon=False, fontsize=11)
    else:
        note_empty(axes, "no step was trained")
    label(axes, "training step", "mean reward of the batch")
    save(figure, path)
