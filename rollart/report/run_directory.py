"""The files of a run directory beside its log, the same for both drivers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollart.report.figures import draw_breakdown, draw_gantt, draw_staleness, draw_utilization
from rollart.report.steps import write_steps
from rollart.report.summary import write_summary
from rollart.report.timeline import write_timeline
from rollart.runlog.reader import records
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import FILE_NAME


def write_results(folder: Path, statistics: RunStatistics, summary: Mapping[str, Any], *, log: bool = True) -> None:
    """Write summary, steps and figures; with `log`, a timeline and a Gantt chart of the log that lies there.

    Raises OutputError.
    """
    figures = folder / "figures"
    figures.mkdir()
    write_summary(folder / "summary.json", summary)
    write_steps(folder / "steps.csv", statistics)
    draw_breakdown(figures / "steps.png", statistics)
    draw_utilization(figures / "utilization.png", statistics)
    draw_staleness(figures / "staleness.png", statistics)
    if log:
        path = folder / FILE_NAME
        write_timeline(folder / "timeline.json", statistics.header, records(path))
        draw_gantt(figures / "trajectories.png", statistics.header, records(path))
