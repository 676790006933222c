"""From a saved run back to a controller, a run log and what the workers must still have."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rollart.domain.commands import Command, EndTrajectory, ResetEnvironment
from rollart.domain.errors import RunLogError
from rollart.domain.events import Event
from rollart.domain.trajectory import End
from rollart.exec.carried import CarriedCounters
from rollart.exec.journal import read_journal
from rollart.exec.ports import ResumePoint, Survivor
from rollart.exec.saved_run import SavedRun
from rollart.runlog.samples import Sample
from rollart.runlog.schema import Record
from rollart.runlog.writer import RunLogWriter
from rollart.sched.config import ControllerConfig
from rollart.sched.controller import Controller
from rollart.sched.state import Phase


@dataclass(slots=True, kw_only=True)
class Restored:
    """A run as it was when its driver went away."""

    controller: Controller
    time_s: float = 0.0
    records: int = 0
    missing: list[Command] = field(default_factory=list)
    """Commands of the last event that the journal lost; they are void by the resumption, but must be logged."""
    last_event: int = 0
    """Its sequence number in the log."""
    counters: CarriedCounters = field(default_factory=CarriedCounters)
    drawings: dict[int, Survivor] = field(default_factory=dict)
    """Trajectory -> its latest attempt, of those that may still be trained on."""

    def point(self) -> ResumePoint:
        """What workers must still have."""
        state = self.controller.state
        needed = [t.id for t in state.trajectories.values() if t.phase is Phase.SCORED]
        needed += [trajectory.id for trajectory in state.batch]
        needed += [number for step in state.trainer.steps for number in step.trajectories]
        return ResumePoint(
            checkpoint=state.trainer.checkpoint,
            survivors=tuple(self.drawings[number] for number in sorted(needed)),
        )


def restore(saved: SavedRun, config: ControllerConfig, log: RunLogWriter) -> Restored:
    """Write the log anew from the journal, and find the controller's state. Raises RunLogError."""
    snapshot = saved.snapshot()
    controller = Controller(config) if snapshot is None else Controller.restore(config, bytes(snapshot.state))
    run = Restored(controller=controller)
    for time_s, record in _rewritten(saved, run, log):
        if snapshot is None or run.records > snapshot.records:
            _decide_again(run, time_s, record)
        _remember(run, record)
    if snapshot is not None and run.records < snapshot.records:
        raise RunLogError(f"{saved.journal_path}: ends before the snapshot; the run cannot be resumed")
    return run


def _rewritten(saved: SavedRun, run: Restored, log: RunLogWriter) -> Iterator[tuple[float, Record]]:
    """All records, each after it was written to the log."""
    for time_s, record in read_journal(saved.journal_path):
        run.time_s = time_s
        run.records += 1
        if isinstance(record, Event):
            run.last_event = log.event(time_s, record)
        elif isinstance(record, Command):
            log.commands(time_s, (record,), run.last_event)
        elif isinstance(record, Sample):
            log.sample(time_s, record)
        yield time_s, record


def _decide_again(run: Restored, time_s: float, record: Record) -> None:
    if isinstance(record, Event):
        if run.missing:
            raise _differs(run, run.missing[0])
        run.missing = run.controller.handle(record, time_s)
    elif isinstance(record, Command):
        if not run.missing or run.missing[0] != record:
            raise _differs(run, record)
        run.missing = run.missing[1:]


def _differs(run: Restored, command: Command) -> RunLogError:
    return RunLogError(
        f"resume: record {run.records} of the journal leads to other commands than it did ({command}); "
        "resume the run with the version of RollArt that began it"
    )


def _remember(run: Restored, record: Record) -> None:
    if isinstance(record, ResetEnvironment):
        run.drawings[record.trajectory] = Survivor(
            trajectory=record.trajectory,
            task=record.task,
            prompt=record.prompt,
            member=record.member,
            attempt=record.attempt,
        )
    elif isinstance(record, EndTrajectory) and record.end is not End.TRAINED:
        run.drawings.pop(record.trajectory, None)
    elif isinstance(record, Sample):
        run.counters.remember((record,))
