"""Watches a run's events and commands, brings faults about one after the other, and takes the time of each recovery."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from rollart.domain.commands import (
    CloseEnvironment,
    Command,
    EndTrajectory,
    GenerateTurn,
    ResetEnvironment,
    ScoreTrajectory,
    StepEnvironment,
)
from rollart.domain.events import (
    Answer,
    EngineLost,
    EnvironmentFailed,
    EnvironmentReady,
    Event,
    RewardFailed,
    TrainerLost,
    TrainingEnded,
    TrajectoryScored,
    TurnGenerated,
)
from rollart.exec.execute import Crew
from rollart.exec.ports import Desk, Orders, ResumePoint, WorkerFactory, WorkerSet
from rollart.runlog.samples import Sample

CALM_STEPS = 2
"""Training steps between a recovery and the next fault, at least."""
LONGEST_S = 300.0
"""A recovery that takes longer has failed."""


Times = dict[str, list[tuple[float | None, float]]]
"""Fault -> (noticed, recovered), seconds since it was brought about."""


class Fault(StrEnum):
    """What goes wrong."""

    ENGINE = "engine"
    ENVIRONMENTS = "environments"
    TRAINER = "trainer"
    HANG = "hung environment"
    REWARD = "failed reward"


class Finished(Exception):
    """All faults are over."""


class Chaos:
    """The faults of one run; told every command and every event on the driver's loop, in order."""

    def __init__(self, faults: Sequence[tuple[Fault, Callable[[], None]]], times: Times) -> None:
        """Each fault with what brings it about; `times` are added to."""
        self._faults = list(faults)
        self.times = times
        self.fail: Callable[[BaseException], None] = _nobody
        """Ends the run."""
        self._commands: dict[int, Command] = {}
        self._task: dict[int, str] = {}
        """Trajectory with an environment -> its task."""
        self._tasks: set[str] = set()
        """All that have had an environment."""
        self._calm = 0
        self._version = 0
        self._fault: Fault | None = None
        self._since_s = 0.0
        self._noticed_s: float | None = None
        self._waits: set[Any] = set()
        """What must come back: trajectories, an engine's incarnation, or a version."""
        self._held: dict[int, str] = {}
        """Trajectories with an environment when the fault came."""
        self._failed: set[int] = set()
        """Those whose environment has failed since."""

    # What is watched

    def ordered(self, command: Command) -> None:
        """A command goes out."""
        if isinstance(command, GenerateTurn | StepEnvironment | ScoreTrajectory | ResetEnvironment):
            self._commands[command.id] = command
        if isinstance(command, ResetEnvironment):
            self._task[command.trajectory] = command.task
            self._tasks.add(command.task)
        elif isinstance(command, CloseEnvironment | EndTrajectory):
            self._task.pop(command.trajectory, None)
            # The environment of a failed episode is closed too, and the episode goes on.
            over = isinstance(command, EndTrajectory) or command.trajectory not in self._failed
            if over and self._fault in (Fault.ENVIRONMENTS, Fault.HANG):
                self._back(command.trajectory)

    def happened(self, event: Event) -> None:
        """An event will be handled."""
        command = self._commands.pop(event.command_id, None) if isinstance(event, Answer) else None
        if self._fault is not None:
            self._follow(self._fault, event, command)
        if isinstance(event, TrainingEnded):
            self._version = max(self._version, event.version)
            self._calm += 1
        if self._fault is None and self._calm >= CALM_STEPS and self._would_be_noticed():
            self._next()
        if self._fault is not None and time.monotonic() - self._since_s > LONGEST_S:
            self.fail(RuntimeError(f"{self._fault}: no recovery within {LONGEST_S:.0f} s"))

    def _would_be_noticed(self) -> bool:
        """Whether no process of environments is empty: nobody misses an empty one."""
        return set(self._task.values()) == self._tasks

    def _next(self) -> None:
        if not self._faults:
            self.fail(Finished())
            return
        self._fault, bring_about = self._faults.pop(0)
        self._held = dict(self._task)
        self._since_s, self._noticed_s = time.monotonic(), None
        self._waits.clear()
        self._failed.clear()
        print(f"{self._fault} at version {self._version}", flush=True)
        bring_about()

    def _notice(self, *waits: Any) -> None:
        """The controller knows of the fault; recovered when all of this is back."""
        if self._noticed_s is None:
            self._noticed_s = time.monotonic() - self._since_s
            self._waits = set(waits)

    def _back(self, what: Any) -> None:
        if what not in self._waits:
            return
        self._waits.discard(what)
        if not self._waits and self._fault is not None:
            self.times[self._fault].append((self._noticed_s, time.monotonic() - self._since_s))
            print(f"{self._fault}: {self.times[self._fault][-1][1]:.1f} s", flush=True)
            self._fault = None
            self._calm = 0

    # What belongs to each fault

    def _follow(self, fault: Fault, event: Event, command: Command | None) -> None:
        if fault is Fault.ENGINE:
            self._follow_engine(event, command)
        elif fault is Fault.TRAINER:
            self._follow_trainer(event)
        elif fault is Fault.REWARD:
            self._follow_reward(event, command)
        else:
            self._follow_environments(fault, event, command)

    def _follow_engine(self, event: Event, command: Command | None) -> None:
        if isinstance(event, EngineLost):
            self._notice((event.engine, event.incarnation + 1))
        elif isinstance(event, TurnGenerated) and isinstance(command, GenerateTurn):
            self._back((command.engine, command.incarnation))

    def _follow_trainer(self, event: Event) -> None:
        if isinstance(event, TrainerLost):
            self._notice(self._version + 1)
        elif isinstance(event, TrainingEnded):
            self._back(event.version)

    def _follow_reward(self, event: Event, command: Command | None) -> None:
        if not isinstance(command, ScoreTrajectory):
            return
        if isinstance(event, RewardFailed):
            self._notice(command.trajectory)
        elif isinstance(event, TrajectoryScored):
            self._back(command.trajectory)

    def _follow_environments(self, fault: Fault, event: Event, command: Command | None) -> None:
        if not isinstance(command, ResetEnvironment | StepEnvironment):
            return
        if isinstance(event, EnvironmentFailed):
            self._failed.add(command.trajectory)
            task = self._held.get(command.trajectory)
            same = {each for each, of in self._held.items() if of == task and self._task.get(each) == task}
            self._notice(*({command.trajectory} if fault is Fault.HANG else same | {command.trajectory}))
        elif isinstance(event, EnvironmentReady):
            self._back(command.trajectory)


def _nobody(_: BaseException) -> None:
    """Nobody drives yet."""


class Watched:
    """Workers whose commands are seen by a Chaos."""

    def __init__(self, workers: WorkerSet, chaos: Chaos) -> None:
        self._workers = workers
        self._chaos = chaos

    async def start(self) -> None:
        """As the workers."""
        await self._workers.start()

    async def resume(self, point: ResumePoint) -> None:
        """As the workers."""
        await self._workers.resume(point)

    async def stop(self) -> None:
        """As the workers."""
        await self._workers.stop()

    def samples(self) -> Iterator[Sample]:
        """As the workers."""
        return self._workers.samples()

    def figures(self) -> Mapping[str, Any]:
        """As the workers."""
        return self._workers.figures()

    def orders(self) -> Orders:
        """As the workers, with the Chaos listening."""

        def heard(carry_out: Callable[[Any], object]) -> Callable[[Any], object]:
            def handler(command: Command) -> object:
                self._chaos.ordered(command)
                return carry_out(command)

            return handler

        return {kind: heard(carry_out) for kind, carry_out in self._workers.orders().items()}


def watched(crew: Crew, chaos: Chaos) -> Crew:
    """The crew with a Chaos beside its driver."""

    def make_workers(clock: Any) -> WorkerFactory:
        factory = crew.make_workers(clock)

        def made(desk: Desk) -> WorkerSet:
            def report(event: Event) -> None:
                chaos.happened(event)
                desk.report(event)

            chaos.fail = desk.fail
            return Watched(factory(replace(desk, report=report)), chaos)

        return made

    return replace(crew, make_workers=make_workers)
