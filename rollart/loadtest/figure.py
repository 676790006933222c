"""A replay in one picture: what each request met, simulated and measured."""

from pathlib import Path

import numpy as np

from rollart.loadtest.latencies import Seconds
from rollart.loadtest.replay_report import ReplayReport
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, save

_NAMES = {"ttft": "first token", "tpot": "time per output token", "e2e": "end to end"}


def draw_replay(path: Path, report: ReplayReport) -> None:
    """Cumulative shares of requests over each latency, on a logarithmic axis. Raises OutputError."""
    title = f"{report.log.name}: simulated (lines)" + (" and measured (dashes)" if report.log.measured else "")
    figure, axes = new_figure(title)
    measured = report.measured
    for (key, name), colour in zip(_NAMES.items(), SERIES_COLOURS, strict=False):
        axes.plot(*_shares(getattr(report.simulated, key)), color=colour, label=name)
        if measured is not None:
            axes.plot(*_shares(getattr(measured, key)), color=colour, linestyle="--")
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.legend(loc="upper left", frameon=False)
    label(axes, "latency (s)", "share of requests", grid="both")
    save(figure, path)


def _shares(seconds: Seconds) -> tuple[Seconds, Seconds]:
    known = np.sort(seconds[~np.isnan(seconds) & (seconds > 0)])
    return known, (np.arange(known.size, dtype=np.float64) + 1) / max(known.size, 1)
