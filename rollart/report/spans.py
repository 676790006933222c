"""Spans: who was busy with what from when to when, for timelines and Gantt charts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollart.domain.commands import (
    UNANSWERED,
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    Command,
    EngineCommand,
    PushWeights,
    ResetEnvironment,
    RestartTrainer,
    StepEnvironment,
    StopRun,
    TrainBatch,
)
from rollart.domain.events import (
    Answer,
    EngineLost,
    EngineResumed,
    EngineStarted,
    EngineSuspended,
    EnvironmentFailed,
    Event,
    GenerationAborted,
    RewardFailed,
    RunResumed,
    TrainerLost,
    TrainingEnded,
)
from rollart.runlog.schema import Record
from rollart.runlog.stages import STAGE_OF, Stage

SUSPENDED = "Suspended"
"""`what` of the time in which an engine stands still; all other spans have the name of their command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A command from its issue to its end, or a suspension."""

    what: str
    stage: Stage
    begin_s: float
    end_s: float
    outcome: str
    """done, failed, aborted, lost, stopped, or open where the view ends first."""
    trajectory: int | None = None
    engine: int | None = None
    task: str | None = None
    turn: int | None = None

    @property
    def duration_s(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


def spans(records: Iterable[tuple[int, float, Record]], *, steps: int | None) -> Iterator[Span]:
    """Spans in order of their end, up to the end of `steps` training steps; reads no further."""
    tracer = _Tracer()
    ended = 0
    for _, time_s, record in records:
        yield from tracer.take(time_s, record)
        ended += isinstance(record, TrainingEnded)
        if steps is not None and ended >= steps:
            break
    yield from tracer.cut()


class _Tracer:
    def __init__(self) -> None:
        self._open: dict[int, tuple[float, Command]] = {}
        self._environment_order: dict[int, int] = {}
        self._suspended: dict[int, float] = {}
        self._tasks: dict[int, str] = {}
        self._time_s = 0.0

    def take(self, time_s: float, record: Record) -> Iterator[Span]:
        self._time_s = time_s
        if isinstance(record, Answer):
            yield from self._answered(record)
        elif isinstance(record, EngineLost):
            yield from self._lost(record)
        elif isinstance(record, TrainerLost):
            yield from self._trainer_lost()
        elif isinstance(record, RunResumed):
            yield from self._all_lost()
        elif isinstance(record, Command) and not isinstance(record, Event):
            yield from self._ordered(record)

    def cut(self) -> Iterator[Span]:
        """End what is open."""
        for number in list(self._open):
            yield from self._close(number, "open")
        for engine in list(self._suspended):
            yield from self._resumed(engine, "open")

    def _answered(self, event: Answer) -> Iterator[Span]:
        entry = self._open.get(event.command_id)
        if entry is None:
            return
        command = entry[1]
        failed = isinstance(event, EnvironmentFailed | RewardFailed)
        yield from self._close(event.command_id, "failed" if failed else "done")
        if isinstance(event, GenerationAborted) and isinstance(command, AbortGeneration):
            yield from self._close(command.target, "aborted")
        if isinstance(command, EngineCommand):
            if isinstance(event, EngineSuspended | EngineStarted):
                self._suspended.setdefault(command.engine, self._time_s)
            elif isinstance(event, EngineResumed):
                yield from self._resumed(command.engine, "done")

    def _lost(self, event: EngineLost) -> Iterator[Span]:
        for number, (_, command) in list(self._open.items()):
            if getattr(command, "engine", None) == event.engine or number in event.commands:
                yield from self._close(number, "lost")
        yield from self._resumed(event.engine, "lost")

    def _trainer_lost(self) -> Iterator[Span]:
        for number, (_, command) in list(self._open.items()):
            if isinstance(command, TrainBatch | PushWeights | RestartTrainer):
                yield from self._close(number, "lost")

    def _all_lost(self) -> Iterator[Span]:
        for number in list(self._open):
            yield from self._close(number, "lost")
        for engine in list(self._suspended):
            yield from self._resumed(engine, "lost")

    def _ordered(self, command: Command) -> Iterator[Span]:
        if type(command) not in UNANSWERED:
            self._open[command.id] = (self._time_s, command)
        if isinstance(command, ResetEnvironment):
            self._tasks[command.trajectory] = command.task
        if isinstance(command, ResetEnvironment | StepEnvironment):
            self._environment_order[command.trajectory] = command.id
        elif isinstance(command, CloseEnvironment):
            yield from self._close(self._environment_order.pop(command.trajectory, -1), "aborted")
        elif isinstance(command, CancelTimer):
            yield from self._close(command.target, "aborted")
        elif isinstance(command, StopRun):
            for number in list(self._open):
                yield from self._close(number, "stopped")

    def _close(self, number: int, outcome: str) -> Iterator[Span]:
        entry = self._open.pop(number, None)
        if entry is None:
            return
        begin_s, command = entry
        trajectory: int | None = getattr(command, "trajectory", None)
        yield Span(
            what=type(command).__name__,
            stage=STAGE_OF[type(command)],
            begin_s=begin_s,
            end_s=self._time_s,
            outcome=outcome,
            trajectory=trajectory,
            engine=getattr(command, "engine", None),
            task=None if trajectory is None else self._tasks.get(trajectory),
            turn=getattr(command, "turn", None),
        )

    def _resumed(self, engine: int, outcome: str) -> Iterator[Span]:
        begin_s = self._suspended.pop(engine, None)
        if begin_s is not None:
            yield Span(
                what=SUSPENDED,
                stage=Stage.WEIGHT_SYNC_EXPOSED,
                begin_s=begin_s,
                end_s=self._time_s,
                outcome=outcome,
                engine=engine,
            )
