"""Finds the training steps of a run: what was trained on, from when to when.

A step that is done again, since the trainer had to start from an older checkpoint, is no further step: its time is
part of the step that comes next.
"""

from dataclasses import dataclass

import numpy as np

from rollart.domain.commands import TrainBatch
from rollart.domain.events import RunStarted, TrainingEnded
from rollart.runlog.window import Floats, Ints, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """A finished step."""

    batch: TrainBatch
    end_seq: int
    """Its TrainingEnded."""
    begin_s: float
    end_s: float


class TrainingSteps:
    """Pairs TrainBatch with TrainingEnded."""

    def __init__(self) -> None:
        """The run has not started."""
        self.started_s: float | None = None
        """Time of RunStarted."""
        self.last_end_s = 0.0
        self._open: dict[int, TrainBatch] = {}
        self._version = 0

    def consume(self, window: Window) -> list[TrainingStep]:
        """Take a window; the steps that it finishes, in order."""
        start = window.get(RunStarted)
        if start is not None and self.started_s is None:
            self.started_s = self.last_end_s = float(start.time_s[0])
        orders = window.get(TrainBatch)
        if orders is not None:
            for order in orders.records():
                assert isinstance(order, TrainBatch)
                self._open[order.id] = order
        ends = window.get(TrainingEnded)
        if ends is None:
            return []
        steps = []
        for seq, time_s, command in zip(
            ends.seq.tolist(), ends.time_s.tolist(), ends.ints("command_id").tolist(), strict=True
        ):
            batch = self._open.pop(command, None)
            if batch is not None and batch.version > self._version:
                self._version = batch.version
                steps.append(TrainingStep(batch=batch, end_seq=seq, begin_s=self.last_end_s, end_s=time_s))
                self.last_end_s = time_s
        return steps


def marks_of(steps: list[TrainingStep], window: Window) -> tuple[Ints, Floats]:
    """(seq, time_s) of the start of the run, if it is in the window, and of the ends of steps."""
    start = window.get(RunStarted)
    first = [] if start is None else [(int(start.seq[0]), float(start.time_s[0]))]
    marks = first + [(step.end_seq, step.end_s) for step in steps]
    return (
        np.array([seq for seq, _ in marks], dtype=np.int64),
        np.array([time_s for _, time_s in marks], dtype=np.float64),
    )
