"""What `rollart engine` shows to people and leaves in a folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollart.cli.present import number, show_table

if TYPE_CHECKING:
    from rollart.loadtest.replay_report import ReplayReport

_LATENCIES = {"ttft": "first token (ms)", "tpot": "per output token (ms)", "e2e": "end to end (ms)"}
_FIGURES = ("mean", "p50", "p90")


def show_load(figures: Mapping[str, Any]) -> None:
    """The latencies of a closed loop."""
    title = f"{_engine(figures)}, {figures['concurrency']} in flight, {figures['requests']:,} requests"
    rows = _latency_rows(figures)
    rows.append(["output tokens per s", number(figures["output_tokens_per_s"]), "", ""])
    show_table(title, ("", *_FIGURES), rows)


def show_replay(figures: Mapping[str, Any]) -> None:
    """Simulated and measured latencies of a replay, and the error table."""
    title = f"{figures['log']} on {_engine(figures)}: {figures['requests']:,} requests"
    for kind in ("simulated", "measured"):
        if kind in figures:
            rows = _latency_rows(figures[kind])
            rows.append(["duration (s)", number(figures[kind]["duration_s"], 4), "", ""])
            show_table(f"{title}, {kind}", ("", *_FIGURES), rows)
    if "error_pct" in figures:
        errors = figures["error_pct"]
        rows = [
            [name, *(_signed(errors[key][figure]) for figure in _FIGURES), number(errors[key]["mape"])]
            for key, name in _LATENCIES.items()
        ]
        rows.append(["duration", _signed(errors["duration"]), "", "", ""])
        show_table("error (%), simulated against measured", ("", *_FIGURES, "mean absolute"), rows)


def write_replay(folder: Path, report: "ReplayReport", figures: Mapping[str, Any]) -> None:
    """replay.json, requests.csv and replay.png in a folder. Raises OutputError."""
    from rollart.loadtest.figure import draw_replay
    from rollart.report.output import write_text

    write_text(folder / "replay.json", json.dumps(figures, indent=2, allow_nan=False) + "\n")
    report.write_requests(folder / "requests.csv")
    draw_replay(folder / "replay.png", report)


def _engine(figures: Mapping[str, Any]) -> str:
    return f"{figures['model']} on {figures['tp']} x {figures['device']}"


def _latency_rows(figures: Mapping[str, Any]) -> list[list[str]]:
    return [
        [name, *(number(figures[f"{key}_ms"][figure], 4) for figure in _FIGURES)] for key, name in _LATENCIES.items()
    ]


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"
