"""Pools: which share of their device time was busy, step by step."""

from pathlib import Path

from matplotlib.ticker import PercentFormatter

from rollart.report.figures.canvas import SERIES_COLOURS, label, legend_beside, new_figure, note_empty, save
from rollart.runlog.statistics import RunStatistics


def draw_utilization(path: Path, statistics: RunStatistics) -> None:
    """One line a pool, constant within a step. Raises OutputError."""
    header = statistics.header
    steps = [step for step in statistics.steps if step.usage is not None and step.duration_s > 0]
    figure, axes = new_figure(f"{header.scenario}, {header.policy}: utilisation of the pools")
    for place, pool in enumerate(header.pools):
        if not steps or not pool.devices:
            continue
        shares = [
            step.usage.pool_busy_device_s[pool.name] / (pool.devices * step.duration_s)
            for step in steps
            if step.usage is not None
        ]
        edges = [steps[0].begin_s, *(step.end_s for step in steps)]
        axes.stairs(
            shares,
            edges,
            baseline=None,
            linewidth=2.2,
            color=SERIES_COLOURS[place % len(SERIES_COLOURS)],
            linestyle=("-", "--", ":")[place // len(SERIES_COLOURS) % 3],
            label=f"{pool.name} ({pool.devices} x {pool.device})",
        )
    if not steps:
        note_empty(axes, "the log has no samples at the ends of steps")
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    label(axes, "time (s)", "busy share of device time")
    legend_beside(axes)
    save(figure, path)
