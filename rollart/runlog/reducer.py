"""The reducer: from windows of records to the statistics of the run, while it goes on or afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rollart.domain.events import EVENTS, RunStarted
from rollart.domain.trajectory import End
from rollart.runlog.accounting import usage_between, waste_of
from rollart.runlog.commandbook import CommandBook
from rollart.runlog.counters import Counters
from rollart.runlog.critical_path import Segment, critical_path
from rollart.runlog.header import RunHeader
from rollart.runlog.stageclock import StageClock
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics, StepStatistics, TaskStatistics
from rollart.runlog.suspensions import Suspensions
from rollart.runlog.trainingsteps import TrainingStep, TrainingSteps, marks_of
from rollart.runlog.trajectories import ENDS, Trajectories
from rollart.runlog.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finished:
    training: TrainingStep
    busy_s: dict[Stage, float]
    path: tuple[Segment, ...]


class Reducer:
    """A sink of the run log; ask for `statistics` at any time."""

    def __init__(self, header: RunHeader) -> None:
        """Nothing has happened."""
        self._header = header
        self._book = CommandBook()
        self._suspensions = Suspensions()
        self._clock = StageClock()
        self._training = TrainingSteps()
        self._trajectories = Trajectories(header.tasks, header.engines)
        self._counters = Counters(header.engines)
        self._finished: list[_Finished] = []
        self._busy_before = dict.fromkeys(Stage, 0.0)
        self._events = 0
        self._end_s = 0.0

    def consume(self, window: Window) -> None:
        """Take the next window."""
        commands, closings = self._book.consume(window)
        turnings = self._suspensions.consume(window, self._book)
        steps = self._training.consume(window)
        totals = self._clock.consume(commands, closings, self._book, turnings, marks_of(steps, window))
        if window.get(RunStarted) is not None:
            self._counters.start(float(self._training.last_end_s if not steps else steps[0].begin_s))
        self._trajectories.consume(window, commands, closings, self._book)
        self._counters.consume(window)
        self._events += sum(len(batch) for batch in window.of(EVENTS))
        self._end_s = max(self._end_s, *(float(batch.time_s[-1]) for batch in window.batches.values()))
        self._finish(steps, totals[len(totals) - len(steps) :])

    def statistics(self) -> RunStatistics:
        """All figures, of what was consumed so far."""
        begin_s = self._training.started_s or 0.0
        begun, ended = self._trajectories.rows["task"] >= 0, self._trajectories.rows["end"] >= 0
        return RunStatistics(
            header=self._header,
            begin_s=begin_s,
            end_s=self._end_s,
            steps=tuple(self._steps()),
            ends=self._ends(begun),
            open_trajectories=int((begun & ~ended).sum()),
            never_begun=int((ended & ~begun).sum()),
            tasks=tuple(self._task(code, task) for code, task in enumerate(self._header.tasks)),
            waste=waste_of(self._counters, self._trajectories),
            events=self._events,
            turns=int(self._trajectories.rows["turns"].sum()),
        )

    def _finish(self, steps: list[TrainingStep], totals: list[dict[Stage, float]]) -> None:
        for step, total in zip(steps, totals, strict=True):
            path = critical_path(self._book, self._suspensions, step.end_seq, step.begin_s)
            busy_s = {stage: total[stage] - self._busy_before[stage] for stage in Stage}
            self._finished.append(_Finished(training=step, busy_s=busy_s, path=path))
            self._busy_before = total
        if steps:
            self._book.forget_before(steps[-1].end_s)
            self._suspensions.forget_before(steps[-1].end_s)

    def _steps(self) -> Iterable[StepStatistics]:
        ends = [finished.training.end_s for finished in self._finished]
        for finished, next_s in zip(self._finished, [*ends[1:], np.inf], strict=False):
            training = finished.training
            batch = training.batch
            yield StepStatistics(
                step=batch.step,
                begin_s=training.begin_s,
                end_s=training.end_s,
                trajectories=len(batch.trajectories),
                tokens=sum(batch.context_tokens),
                staleness=tuple(batch.installed - start for start in batch.start_versions),
                lag=tuple(batch.version - 1 - start for start in batch.start_versions),
                busy_s=finished.busy_s,
                path=finished.path,
                task_of=self._tasks_of(finished.path),
                usage=usage_between(
                    self._header,
                    self._counters.at(training.begin_s, training.end_s),
                    self._counters.at(training.end_s, next_s),
                    training.end_s - training.begin_s,
                ),
            )

    def _tasks_of(self, path: tuple[Segment, ...]) -> dict[int, str]:
        codes = self._trajectories.rows["task"]
        numbers = dict.fromkeys(segment.trajectory for segment in path if segment.trajectory is not None)
        return {number: self._header.tasks[codes[number]] for number in numbers if codes[number] >= 0}

    def _ends(self, chosen: np.ndarray) -> dict[End, int]:
        codes = self._trajectories.rows["end"][chosen]
        counts = np.bincount(codes[codes >= 0], minlength=len(ENDS)).tolist()
        return dict(zip(ENDS, counts, strict=True))

    def _task(self, code: int, task: str) -> TaskStatistics:
        rows = self._trajectories.rows
        mine = rows["task"] == code
        trained = mine & (rows["end"] == ENDS.index(End.TRAINED))
        rewards = rows["reward"][trained]
        return TaskStatistics(
            task=task,
            started=int(mine.sum()),
            ends=self._ends(mine),
            mean_reward=_mean(rewards[~np.isnan(rewards)]),
            mean_turns=_mean(rows["turns"][trained]),
            truncated_share=_mean(self._trajectories.truncated[trained]),
        )


def reduce_windows(header: RunHeader, windows: Iterable[Window]) -> RunStatistics:
    """The statistics of a whole log."""
    reducer = Reducer(header)
    for window in windows:
        reducer.consume(window)
    return reducer.statistics()


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
