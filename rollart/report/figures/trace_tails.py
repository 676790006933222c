"""Traces: which share of values is larger than x, on logarithmic axes, where tails are straight or bent."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollart.report.figures.canvas import SERIES_COLOURS, label, new_panels, plain_logarithmic, save
from rollart.workload.distribution import Distribution

PANELS = {
    "turns": "turns of a trajectory",
    "context_tokens": "longest context (tokens)",
    "response_tokens": "all output of a trajectory (tokens)",
    "output_tokens": "output of a turn (tokens)",
    "observation_tokens": "observation of a turn (tokens)",
    "env_s": "environment step (s)",
    "reset_s": "reset (s)",
    "reward_s": "scoring (s)",
}
MOST_TASKS = 14
"""Lines in a panel; colours repeat once, dashed."""


def draw_tails(path: Path, distributions: Mapping[str, Mapping[str, Distribution]], title: str) -> None:
    """One panel for each quantity that was recorded, one line a task; the largest tasks where there are many."""
    tasks = sorted(distributions, key=lambda task: -distributions[task]["turns"].count)[:MOST_TASKS]
    panels = [name for name in PANELS if any(_drawable(distributions[task][name]) for task in tasks)]
    hidden = len(distributions) - len(tasks)
    figure, all_axes = new_panels(title + (f" (without {hidden} smaller tasks)" if hidden else ""), len(panels))
    for axes, name in zip(all_axes, panels, strict=True):
        for place, task in enumerate(tasks):
            if _drawable(distributions[task][name]):
                _draw(axes, distributions[task][name], place, task)
        plain_logarithmic(axes)
        label(axes, PANELS[name], "share at least as large", grid="both")
    _legend(figure, all_axes)
    save(figure, path)


def _drawable(found: Distribution) -> bool:
    return found.count > 0 and found.max > 0.0


def _draw(axes: Axes, found: Distribution, place: int, task: str) -> None:
    values, shares = found.survival()
    positive = [(value, share) for value, share in zip(values, shares, strict=True) if value > 0.0]
    axes.step(
        [value for value, _ in positive],
        [share for _, share in positive],
        where="pre",
        color=SERIES_COLOURS[place % len(SERIES_COLOURS)],
        linestyle=("-", "--")[place // len(SERIES_COLOURS) % 2],
        linewidth=1.8,
        marker="o" if len(positive) == 1 else None,
        label=task,
    )


def _legend(figure: Figure, all_axes: list[Axes]) -> None:
    handles: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(name), handle)
    if handles:
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, frameon=False)
