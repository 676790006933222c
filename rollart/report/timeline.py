"""timeline.json: a run's first steps in the Chrome trace format, for ui.perfetto.dev.

Every engine is a process whose rows are the turns that it serves at once, with a row for suspensions; environments,
rewards, trainer and weights are processes of their own. Arrows link the turns of a trajectory. Where a run is too large
to show every trajectory, the names of the processes say how many are shown.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import msgspec

from rollart.report.output import replacing
from rollart.report.spans import SUSPENDED, Span
from rollart.report.thinning import thinned_spans
from rollart.runlog.header import RunHeader
from rollart.runlog.schema import Record
from rollart.runlog.stages import Stage

STEPS = 3
"""Steps shown unless told otherwise."""

MOST_SPANS = 40_000
"""Some 10 MB of JSON, which the viewer loads at once."""

_US_PER_S = 1e6
_ENVIRONMENTS, _REWARDS, _TRAINER, _WEIGHTS, _TIMERS, _ENGINES = 1, 2, 3, 4, 5, 10
"""Process numbers; engine e has _ENGINES + e."""

_NAMES = {
    _ENVIRONMENTS: "environments",
    _REWARDS: "rewards",
    _TRAINER: "trainer",
    _WEIGHTS: "weights",
    _TIMERS: "back-off",
}
_PROCESS_OF = {
    Stage.ENVIRONMENT: _ENVIRONMENTS,
    Stage.REWARD: _REWARDS,
    Stage.TRAINING: _TRAINER,
    Stage.WEIGHT_SYNC_EXPOSED: _WEIGHTS,
    Stage.WAITING_FOR_BATCH: _TIMERS,
}


def write_timeline(
    path: Path,
    header: RunHeader,
    records: Iterable[tuple[int, float, Record]],
    *,
    steps: int = STEPS,
    most_spans: int = MOST_SPANS,
) -> int:
    """Write the first `steps` steps, thinned to about `most_spans` spans; how many are shown. Raises OutputError."""
    thinned = thinned_spans(records, steps=steps, limit=most_spans)
    shown = sorted(thinned.spans, key=lambda span: (span.begin_s, span.end_s))
    encode = msgspec.json.Encoder().encode
    with replacing(path) as part, part.open("wb") as file:
        file.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
        for place, event in enumerate(_events(header, shown, thinned.stride)):
            file.write(b",\n" if place else b"")
            file.write(encode(event))
        file.write(b"\n]}\n")
    return len(shown)


def _events(header: RunHeader, shown: list[Span], stride: int) -> Iterator[dict[str, Any]]:
    """All trace events of the spans, which are in order of their begin."""
    rows = _Rows()
    before: dict[int, dict[str, Any]] = {}
    arrows = 0
    for span in shown:
        process = _process(span)
        row = 0 if span.what == SUSPENDED else rows.take(process, span)
        slice_ = _slice(span, process, row)
        yield slice_
        if span.what == "GenerateTurn" and span.trajectory is not None:
            earlier = before.get(span.trajectory)
            if earlier is not None:
                arrows += 1
                yield _arrow("s", earlier, arrows)
                yield _arrow("f", slice_, arrows) | {"bp": "e"}
            before[span.trajectory] = slice_
    yield from _labels(header, rows, stride)


def _process(span: Span) -> int:
    on_engine = span.what in ("GenerateTurn", SUSPENDED)
    if on_engine and span.engine is not None:
        return _ENGINES + span.engine
    return _PROCESS_OF.get(span.stage, _TIMERS) if span.what != "AbortGeneration" else _TIMERS


def _slice(span: Span, process: int, row: int) -> dict[str, Any]:
    about = {
        "trajectory": span.trajectory,
        "task": span.task,
        "turn": span.turn,
        "engine": span.engine,
        "outcome": span.outcome,
    }
    name = span.what if span.trajectory is None else f"{span.what} {span.trajectory}"
    return {
        "ph": "X",
        "name": name,
        "cat": span.stage.value,
        "pid": process,
        "tid": row,
        "ts": round(span.begin_s * _US_PER_S, 3),
        "dur": round(span.duration_s * _US_PER_S, 3),
        "args": {key: value for key, value in about.items() if value is not None},
    }


def _arrow(phase: str, slice_: dict[str, Any], number: int) -> dict[str, Any]:
    place = {key: slice_[key] for key in ("pid", "tid", "ts")}
    return {"ph": phase, "name": "next turn", "cat": "trajectory", "id": number, **place}


def _labels(header: RunHeader, rows: "_Rows", stride: int) -> Iterator[dict[str, Any]]:
    share = f", 1 in {stride} trajectories" if stride > 1 else ""
    engines = {_ENGINES + entry.engine: entry for entry in header.engines}
    for process in sorted({*rows.used, *engines}):
        entry = engines.get(process)
        name = _NAMES[process] if entry is None else f"engine {entry.engine} ({entry.group} on {entry.pool})"
        yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name + share}}
        yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}
        if entry is not None:
            yield {"ph": "M", "name": "thread_name", "pid": process, "tid": 0, "args": {"name": "suspended"}}
        for row in range(1, rows.used.get(process, 0) + 1):
            yield {"ph": "M", "name": "thread_name", "pid": process, "tid": row, "args": {"name": f"row {row}"}}


class _Rows:
    """Gives every span of a process a row on which no other span is; rows are numbered from 1."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self._busy: dict[int, list[tuple[float, int]]] = {}
        self._free: dict[int, list[int]] = {}

    def take(self, process: int, span: Span) -> int:
        """The lowest free row; spans come in order of their begin."""
        busy = self._busy.setdefault(process, [])
        free = self._free.setdefault(process, [])
        while busy and busy[0][0] <= span.begin_s:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row = self.used[process] = self.used.get(process, 0) + 1
        heappush(busy, (span.end_s, row))
        return row
