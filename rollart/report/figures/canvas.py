"""What all figures share: size, colours, axes, and how they reach the disk."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rollart.report.output import replacing
from rollart.runlog.stages import Stage

STAGE_COLOURS = {
    Stage.GENERATION: "#0072B2",
    Stage.ENVIRONMENT: "#E69F00",
    Stage.REWARD: "#CC79A7",
    Stage.TRAINING: "#009E73",
    Stage.WEIGHT_SYNC_EXPOSED: "#D55E00",
    Stage.WAITING_FOR_BATCH: "#BBBBBB",
}
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""

SERIES_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""For pools and other sets without colours of their own; they repeat after the last."""

_DOTS_PER_INCH = 100
_TEXT_POINTS = 11
_NARROW = 100.0
"""Ratio of the ends of a logarithmic axis, under which powers of ten alone are too few marks."""


def new_figure(title: str, *, width_px: int = 1200, height_px: int = 550) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes."""
    figure = Figure(
        figsize=(width_px / _DOTS_PER_INCH, height_px / _DOTS_PER_INCH), dpi=_DOTS_PER_INCH, layout="constrained"
    )
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=_TEXT_POINTS + 2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=_TEXT_POINTS)
    axes.set_axisbelow(True)
    return figure, axes


def new_panels(title: str, count: int, *, columns: int = 2, panel_px: int = 360) -> tuple[Figure, list[Axes]]:
    """An empty figure with `count` pairs of axes, at least one, in rows of `columns`."""
    rows = max(1, -(-count // columns))
    figure = Figure(
        figsize=(1200 / _DOTS_PER_INCH, (90 + panel_px * rows) / _DOTS_PER_INCH),
        dpi=_DOTS_PER_INCH,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=_TEXT_POINTS + 2)
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=_TEXT_POINTS)
        axes.set_axisbelow(True)
    if not panels:
        figure.text(0.5, 0.5, "nothing was recorded", ha="center", va="center", fontsize=_TEXT_POINTS)
    return figure, panels


def label(axes: Axes, x: str, y: str, *, grid: str = "y") -> None:
    """Name the axes, with units, and draw a faint grid."""
    axes.set_xlabel(x, fontsize=_TEXT_POINTS)
    axes.set_ylabel(y, fontsize=_TEXT_POINTS)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.8)  # type: ignore[arg-type]


def plain_logarithmic(axes: Axes) -> None:
    """Logarithmic axes with plain numbers; 2 and 5 are named too where an axis spans little. To be called last."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, bounds in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        narrow = bounds[1] / bounds[0] < _NARROW
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())


def legend_beside(axes: Axes, *, reverse: bool = False) -> None:
    """A legend to the right of the axes; reversed where the order of a stack is from below."""
    handles, labels = axes.get_legend_handles_labels()
    if reverse:
        handles, labels = handles[::-1], labels[::-1]
    if handles:
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=_TEXT_POINTS)


def pale(colour: str) -> tuple[float, float, float]:
    """The colour mixed with white; unlike a transparent one it hides the grid."""
    red, green, blue = to_rgb(colour)
    return (0.45 * red + 0.55, 0.45 * green + 0.55, 0.45 * blue + 0.55)


def note_empty(axes: Axes, text: str) -> None:
    """Say in the middle of the axes why there is nothing to see."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=_TEXT_POINTS)


def save(figure: Figure, path: Path) -> None:
    """Write the picture in the format of the file's suffix. Raises OutputError."""
    with replacing(path) as part:
        # Without the version of matplotlib and the date, equal figures are equal files.
        metadata = {"Software": None} if path.suffix == ".png" else {"Date": None, "Creator": None}
        figure.savefig(part, metadata=metadata if path.suffix in (".png", ".svg") else None)
