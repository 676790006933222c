"""Steps: where the time of each one went along its critical path."""

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from rollart.report.figures.canvas import STAGE_COLOURS, label, legend_beside, new_figure, note_empty, pale, save
from rollart.report.words import stage_name
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics


def draw_breakdown(path: Path, statistics: RunStatistics) -> None:
    """One stacked bar a step; warm-up steps are paler. Raises OutputError."""
    header, steps = statistics.header, statistics.steps
    figure, axes = new_figure(f"{header.scenario}, {header.policy}: critical path of each step")
    position = np.array([step.step for step in steps], dtype=np.float64)
    bottom = np.zeros(len(steps))
    counted = np.arange(len(steps)) >= header.warmup_steps
    for stage in Stage:
        seconds = np.array([step.stages_s[stage] for step in steps])
        if not seconds.any():
            continue
        colour = STAGE_COLOURS[stage]
        axes.bar(position[counted], seconds[counted], 0.8, bottom[counted], color=colour, label=stage_name(stage))
        axes.bar(position[~counted], seconds[~counted], 0.8, bottom[~counted], color=pale(colour))
        bottom += seconds
    if not steps:
        note_empty(axes, "no step has ended")
    axes.set_ylim(0, 1.05 * max((step.duration_s for step in steps), default=1.0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    warm_up = " (pale: warm-up)" if header.warmup_steps and steps else ""
    label(axes, f"step{warm_up}", "time on the critical path (s)")
    legend_beside(axes, reverse=True)
    save(figure, path)
