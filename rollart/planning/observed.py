"""What work took in a run or in a simulation, by its log: iterations, training, the movement of weights."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from rollart.domain.commands import Command, PullWeights, PushWeights, UpdateEngine
from rollart.domain.events import Answer, EngineUpdated, WeightsPulled, WeightsPushed
from rollart.runlog.header import RunHeader
from rollart.runlog.samples import EngineSample
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.window import Window

MOVEMENTS: Mapping[str, tuple[type[Command], type[Answer]]] = {
    "push_s": (PushWeights, WeightsPushed),
    "pull_s": (PullWeights, WeightsPulled),
    "update_s": (UpdateEngine, EngineUpdated),
}
"""Each by the order and the answer between which it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Mean times behind the warm-up."""

    iteration_s: Mapping[str, float]
    """Pool -> an iteration of its engines; pools whose engines had none are missing."""
    training_s: float
    """Training, per trained token."""
    movements_s: Mapping[str, float]
    """By the keys of `MOVEMENTS`; those that did not happen are missing."""
    step_s: float


class Observer:
    """A sink that keeps what `observed` needs beside the statistics."""

    def __init__(self, header: RunHeader) -> None:
        """Nothing has been seen."""
        self._pool = {entry.engine: entry.pool for entry in header.engines}
        self._readings: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
        self._asked_s: dict[int, float] = {}
        self._moved: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def consume(self, window: Window) -> None:
        """Take the next window."""
        for name, (order, answer) in MOVEMENTS.items():
            self._movements(name, order, answer, window)
        batch = window.get(EngineSample)
        if batch is not None:
            columns = (batch.column(name) for name in ("engine", "busy_s", "iterations"))
            for time_s, engine, busy_s, iterations in zip(batch.time_s, *columns, strict=True):
                self._readings[int(engine)].append((float(time_s), float(busy_s), int(iterations)))

    def observed(self, run: RunStatistics) -> Observed:
        """The means, with the statistics of the same run."""
        steps = run.counted_steps
        begin_s = steps[0].begin_s
        training_s = sum(step.busy_s[Stage.TRAINING] for step in steps)
        behind = {name: [took_s for at_s, took_s in moved if at_s >= begin_s] for name, moved in self._moved.items()}
        return Observed(
            iteration_s=self._iteration_s(run.begin_s, begin_s),
            training_s=training_s / sum(step.tokens for step in steps),
            movements_s={name: fmean(times_s) for name, times_s in behind.items() if times_s},
            step_s=fmean(step.duration_s for step in steps),
        )

    def _movements(self, name: str, order: type[Command], answer: type[Answer], window: Window) -> None:
        asked, answered = window.get(order), window.get(answer)
        if asked is not None:
            for time_s, command in zip(asked.time_s, asked.column("id"), strict=True):
                self._asked_s[int(command)] = float(time_s)
        if answered is not None:
            for time_s, command in zip(answered.time_s, answered.column("command_id"), strict=True):
                asked_s = self._asked_s.pop(int(command))
                self._moved[name].append((asked_s, float(time_s) - asked_s))

    def _iteration_s(self, run_begin_s: float, begin_s: float) -> dict[str, float]:
        """Behind `begin_s`; a real driver reads the counters a moment after the step that ended then."""
        busy_s: dict[str, float] = defaultdict(float)
        count: dict[str, int] = defaultdict(int)
        for engine, readings in self._readings.items():
            since_start = [(run_begin_s, 0.0, 0), *readings]
            _, first_s, first = next(reading for reading in since_start if reading[0] >= begin_s)
            busy_s[self._pool[engine]] += readings[-1][1] - first_s
            count[self._pool[engine]] += readings[-1][2] - first
        return {pool: busy_s[pool] / number for pool, number in count.items() if number}
