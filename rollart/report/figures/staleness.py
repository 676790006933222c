"""Staleness: how many versions behind the trained trajectories were."""

from pathlib import Path

from matplotlib.ticker import MaxNLocator

from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, note_empty, save
from rollart.runlog.statistics import RunStatistics


def draw_staleness(path: Path, statistics: RunStatistics) -> None:
    """A histogram over all steps. Raises OutputError."""
    header, histogram = statistics.header, statistics.staleness_histogram()
    figure, axes = new_figure(f"{header.scenario}, {header.policy}: staleness of what was trained on", height_px=450)
    if histogram:
        bars = axes.bar(list(histogram), list(histogram.values()), 0.7, color=SERIES_COLOURS[0])
        total = sum(histogram.values())
        axes.bar_label(bars, [f"{100 * count / total:.0f} %" for count in histogram.values()], fontsize=11)
        axes.margins(y=0.1)
        # A few values would otherwise make bars as wide as the page.
        axes.set_xlim(min(0, *histogram) - 0.6, max(5, *histogram) + 0.6)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        note_empty(axes, "no trajectory was trained on")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    label(axes, "staleness (versions installed since the start)", "trajectories")
    save(figure, path)
