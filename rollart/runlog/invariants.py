"""Checks the promises of the control plane on any log, of either driver.

Each trajectory ends exactly once, and what is trained on had begun and keeps the staleness bound; versions never go
back; no order goes to an engine that is known to be down or to an earlier incarnation; environments fit the slots;
every command is answered once, or aborted, or its worker died, or the run stopped; time never goes back and ids rise.

A trainer that starts again from an older checkpoint makes the steps since then void: versions go on from there, and
the trajectories of those steps may be trained on once again.

A trajectory may end before its first reset, while it waits for a slot; it cannot be trained on then.
Memory: one byte for each command, nine for each trajectory, and the open commands.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rollart.domain.commands import (
    UNANSWERED,
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    Command,
    EndTrajectory,
    PushWeights,
    ResetEnvironment,
    RestartTrainer,
    ScoreTrajectory,
    StepEnvironment,
    StopRun,
    TrainBatch,
)
from rollart.domain.events import (
    Answer,
    EngineLost,
    EnvironmentClosed,
    Event,
    RunResumed,
    TrainerLost,
    TrainingEnded,
    WeightsPushed,
)
from rollart.runlog.answers import ANSWERS
from rollart.runlog.fleetcheck import FleetCheck
from rollart.runlog.header import RunHeader
from rollart.runlog.lifecheck import Breach, LifeCheck, Numbers
from rollart.runlog.schema import Record

_OPEN, _ANSWERED, _VOID = 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantReport:
    """What was checked, and what was found."""

    violation: str | None
    """The first broken promise, on one line; None if all hold."""
    events: int
    commands: int
    trajectories: int
    late_answers: int
    """Answers to commands that were void already; they are allowed and ignored."""
    open_at_stop: int
    """Commands that StopRun made void."""


def check_invariants(
    records: Iterable[tuple[int, float, Record]], header: RunHeader, *, staleness_bound: int | None
) -> InvariantReport:
    """Check a whole log, in order of seq; `staleness_bound` None: the policy has no bound.

    Stops at the first violation.
    """
    checker = _Checker(header, staleness_bound)
    violation: str | None = None
    place = "the end of the log"
    try:
        for seq, time_s, record in records:
            place = f"record {seq} at {time_s:.6g} s, {type(record).__name__}"
            checker.take(time_s, record)
        place = "the end of the log"
        checker.finish()
    except Breach as breach:
        violation = f"{place}: {breach}"
    return checker.report(violation)


class _Checker:
    def __init__(self, header: RunHeader, staleness_bound: int | None) -> None:
        self._slots = header.environment.slots
        self._life = LifeCheck(staleness_bound)
        self._fleet = FleetCheck(entry.engine for entry in header.engines)
        self._states = Numbers("b", 0)
        self._open: dict[int, Command] = {}
        self._environment_order: dict[int, int] = {}
        self._score_order: dict[int, int] = {}
        self._environments = 0
        self._time_s = float("-inf")
        self._last_id = -1
        self._pushed = self._trained = self._trainer = 0
        self._stopped = False
        self._events = self._commands = self._late = self._open_at_stop = 0

    def take(self, time_s: float, record: Record) -> None:
        if time_s < self._time_s:
            raise Breach(f"time goes back from {self._time_s:.6g} s; it must not fall")
        self._time_s = time_s
        if isinstance(record, Event):
            self._events += 1
            self._event(record)
        elif isinstance(record, Command):
            self._commands += 1
            self._command(record)

    def finish(self) -> None:
        if not self._stopped and self._open:
            number, command = next(iter(self._open.items()))
            raise Breach(
                f"{len(self._open)} commands are open and there is no StopRun; the first is "
                f"{type(command).__name__} {number}"
            )
        self._life.finish()

    def report(self, violation: str | None) -> InvariantReport:
        return InvariantReport(
            violation=violation,
            events=self._events,
            commands=self._commands,
            trajectories=self._life.begun,
            late_answers=self._late,
            open_at_stop=self._open_at_stop,
        )

    # Events

    def _event(self, event: Event) -> None:
        if isinstance(event, Answer):
            command = self._answer(event)
            if command is not None:
                self._accepted(event, command)
        elif isinstance(event, EngineLost) and self._fleet.lost(event):
            self._void_engine(event)
        elif isinstance(event, TrainerLost) and event.incarnation == self._trainer:
            self._void_all(TrainBatch, PushWeights, RestartTrainer)
        elif isinstance(event, RunResumed):
            self._void_all(Command)
            self._fleet.all_lost()
            self._environments = 0

    def _answer(self, event: Answer) -> Command | None:
        """The command that is answered; None for a late answer."""
        number = event.command_id
        state = self._states[number]
        if state == _VOID:
            self._states[number] = _ANSWERED
            self._late += 1
            return None
        if state != _OPEN:
            raise Breach(f"command {number} {'was answered before' if state == _ANSWERED else 'was never issued'}")
        command = self._open.pop(number)
        if type(event) not in ANSWERS[type(command)]:
            allowed = " or ".join(kind.__name__ for kind in ANSWERS[type(command)])
            raise Breach(f"answers the {type(command).__name__} {number}, which takes {allowed}")
        self._states[number] = _ANSWERED
        return command

    def _accepted(self, event: Answer, command: Command) -> None:
        if isinstance(event, EnvironmentClosed):
            self._environments -= 1
        elif isinstance(event, TrainingEnded):
            if event.version <= self._trained:
                raise Breach(f"makes version {event.version} after {self._trained}; versions must rise")
            self._trained = event.version
            self._life.trained(event.version)
        elif isinstance(event, WeightsPushed):
            if event.version < self._pushed:
                raise Breach(f"pushes version {event.version} after {self._pushed}; versions must not go back")
            self._pushed = event.version
        else:
            self._fleet.answered(event, command)

    def _void_engine(self, event: EngineLost) -> None:
        for number, command in list(self._open.items()):
            addressed = getattr(command, "engine", None) == event.engine
            if (addressed and getattr(command, "incarnation", None) == event.incarnation) or number in event.commands:
                self._void(number)

    # Commands

    def _command(self, command: Command) -> None:
        if self._stopped:
            raise Breach(f"command {command.id} comes after StopRun")
        if command.id <= self._last_id:
            raise Breach(f"id {command.id} follows {self._last_id}; ids must rise")
        self._last_id = command.id
        if type(command) not in UNANSWERED:
            self._open[command.id] = command
            self._states[command.id] = _OPEN
        self._fleet.ordered(command)
        self._consequences(command)

    def _consequences(self, command: Command) -> None:
        if isinstance(command, ResetEnvironment):
            self._environments += 1
            if self._environments > self._slots:
                raise Breach(f"{self._environments} environments exist, the slots are {self._slots}")
            self._life.begin(command)
            self._environment_order[command.trajectory] = command.id
        elif isinstance(command, StepEnvironment):
            self._environment_order[command.trajectory] = command.id
        elif isinstance(command, CloseEnvironment):
            self._void(self._environment_order.pop(command.trajectory, -1))
        elif isinstance(command, AbortGeneration | CancelTimer):
            self._void(command.target)
        elif isinstance(command, ScoreTrajectory):
            self._score_order[command.trajectory] = command.id
        elif isinstance(command, EndTrajectory):
            self._life.end(command)
            # Nobody waits for the score any more; the function may answer or not.
            self._void(self._score_order.pop(command.trajectory, -1))
        elif isinstance(command, TrainBatch):
            self._life.train(command)
        elif isinstance(command, RestartTrainer):
            self._restart_trainer(command)
        elif isinstance(command, StopRun):
            self._stopped = True
            self._open_at_stop = len(self._open)
            self._void_all(Command)

    def _restart_trainer(self, command: RestartTrainer) -> None:
        if command.incarnation <= self._trainer:
            raise Breach(f"the trainer is restarted as incarnation {command.incarnation} after {self._trainer}")
        self._trainer = command.incarnation
        self._trained = command.version
        self._life.rewind(command.version)

    def _void_all(self, *kinds: type[Command]) -> None:
        for number, command in list(self._open.items()):
            if isinstance(command, kinds):
                self._void(number)

    def _void(self, number: int) -> None:
        if self._open.pop(number, None) is not None:
            self._states[number] = _VOID
