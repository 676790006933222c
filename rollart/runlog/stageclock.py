"""Seconds in which at least one worker of a stage was at work, summed up over the run.

Stages overlap, so these do not add up to the time that passed; the critical path does.
"""

from collections.abc import Sequence

import numpy as np

from rollart.domain.commands import COMMANDS, PushWeights
from rollart.runlog.commandbook import CODE, Closings, CommandBook
from rollart.runlog.exchange import Commands
from rollart.runlog.ledger import Array
from rollart.runlog.stages import STAGE_OF, Stage
from rollart.runlog.suspensions import Turning
from rollart.runlog.window import Floats, Ints

_COUNTED = (Stage.GENERATION, Stage.ENVIRONMENT, Stage.REWARD, Stage.TRAINING)
_PUSH, _KEPT, _RELEASED, _COUNTERS = 4, 5, 6, 7
"""Columns of the counters behind those of _COUNTED: open pushes, engines suspended with and without memory."""


def _counter_of_code() -> Array:
    counters = np.full(len(COMMANDS), -1, dtype=np.int64)
    for kind, stage in STAGE_OF.items():
        if stage in _COUNTED:
            counters[CODE[kind]] = _COUNTED.index(stage)
    counters[CODE[PushWeights]] = _PUSH
    return counters


_COUNTER = _counter_of_code()


class StageClock:
    """Counts what is open and integrates over time."""

    def __init__(self) -> None:
        """Nothing is open."""
        self._open = np.zeros(_COUNTERS, dtype=np.int64)
        self._total_s = np.zeros(len(Stage))
        self._time_s: float | None = None

    def consume(
        self,
        commands: Commands,
        closings: Closings,
        book: CommandBook,
        turnings: Sequence[Turning],
        marks: tuple[Ints, Floats],
    ) -> list[dict[Stage, float]]:
        """Take a window; the totals at each mark, given as (seq, time_s) in order."""
        opened = _COUNTER[commands.code]
        closed = _COUNTER[book.commands["code"][closings.row]]
        turned = [_RELEASED if each.released else _KEPT for each in turnings]
        parts = [
            (commands.seq, commands.time_s, opened, np.ones_like(opened)),
            (closings.seq, closings.time_s, closed, np.full_like(closed, -1)),
            (*_times(turnings), np.array(turned, np.int64), np.array([t.delta for t in turnings], np.int64)),
            (*marks, np.full(len(marks[0]), -1), np.zeros(len(marks[0]), dtype=np.int64)),
        ]
        seq, time_s, counter, delta = (np.concatenate([part[i] for part in parts]) for i in range(4))
        is_mark = np.arange(len(seq)) >= len(seq) - len(marks[0])
        wanted = (counter >= 0) | is_mark
        order = np.flatnonzero(wanted)
        order = order[np.argsort(seq[order], kind="stable")]
        return self._integrate(time_s[order], counter[order], delta[order], is_mark[order])

    def _integrate(self, time_s: Array, counter: Array, delta: Array, is_mark: Array) -> list[dict[Stage, float]]:
        if not len(time_s):
            return []
        changes = np.zeros((len(time_s), _COUNTERS), dtype=np.int64)
        acts = counter >= 0
        changes[np.flatnonzero(acts), counter[acts]] = delta[acts]
        after = self._open + np.cumsum(changes, axis=0)
        before = np.vstack([self._open, after[:-1]])
        begin_s = float(time_s[0]) if self._time_s is None else self._time_s
        passed_s = np.diff(time_s, prepend=begin_s)
        totals = self._total_s + np.cumsum(_busy(before) * passed_s[:, None], axis=0)
        self._open, self._total_s, self._time_s = after[-1], totals[-1], float(time_s[-1])
        return [dict(zip(Stage, row, strict=True)) for row in totals[is_mark].tolist()]


def _busy(open_now: Array) -> Array:
    """Which stages are busy, one row an interval, one column a stage."""
    works = open_now[:, : len(_COUNTED)] > 0
    training = works[:, _COUNTED.index(Stage.TRAINING)]
    # Engines that gave their memory to a running trainer wait for training, not for weights.
    syncing = (open_now[:, _KEPT] > 0) | ((open_now[:, _RELEASED] > 0) & ~training)
    waiting = ~training & ~syncing & (open_now[:, _PUSH] == 0)
    return np.column_stack([works, syncing, waiting])


def _times(turnings: Sequence[Turning]) -> tuple[Ints, Floats]:
    return (
        np.array([turning.seq for turning in turnings], dtype=np.int64),
        np.array([turning.time_s for turning in turnings], dtype=np.float64),
    )
