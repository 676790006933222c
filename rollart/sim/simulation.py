"""The simulator's driver: reports what happens to the controller and carries out what it orders.

Equal-time order is total: SimPy's calendar by (time, priority, sequence), and facts that follow from one instant are
handled first come first served. A command is carried out when the event that caused it has been handled; nothing is
handled in the middle of another event.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from rollart.costs.interface import TrainingCosts
from rollart.domain.commands import (
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    Command,
    EndTrajectory,
    GenerateTurn,
    PullWeights,
    PushWeights,
    ResetEnvironment,
    RestartEngine,
    ResumeEngine,
    ScoreTrajectory,
    SetTimer,
    StepEnvironment,
    StopRun,
    SuspendEngine,
    TrainBatch,
    UpdateEngine,
)
from rollart.domain.errors import InvariantError, StuckError
from rollart.domain.events import Event, RunStarted, TimerFired, TrainingEnded
from rollart.domain.job import Job
from rollart.runlog.writer import RunLogWriter
from rollart.sched.config import ControllerConfig
from rollart.sched.controller import Controller
from rollart.sim.assembly import EngineKind
from rollart.sim.clock import Call, Clock
from rollart.sim.sampling import write_samples
from rollart.sim.workers import Workers
from rollart.workload.trajectory import Workload


class Simulation:
    """One run in simulated time."""

    def __init__(
        self,
        job: Job,
        workload: Workload,
        config: ControllerConfig,
        kinds: list[EngineKind],
        training: TrainingCosts,
        log: RunLogWriter,
        on_step: Callable[[int, float], None] | None = None,
    ) -> None:
        self.clock = Clock()
        self.controller = Controller(config)
        self._handle = self.controller.handle
        self._log = log
        self._on_step = on_step
        self._inbox: deque[Event] = deque()
        self._handling = False
        self._timers: set[int] = set()
        self.events = 0
        self.workers = Workers(job, workload, kinds, training, self.clock, self.report)
        self._execute = self._table()

    def _table(self) -> dict[type[Command], Callable[[Any], None]]:
        workers = self.workers
        engines, environments, store = workers.engines, workers.environments, workers.store
        return {
            ResetEnvironment: environments.reset,
            StepEnvironment: environments.step,
            CloseEnvironment: environments.close,
            GenerateTurn: workers.generation.generate,
            AbortGeneration: workers.generation.abort,
            ScoreTrajectory: workers.rewards.score,
            EndTrajectory: lambda c: workers.forget(c.trajectory),
            TrainBatch: workers.trainer.train,
            PushWeights: store.push,
            PullWeights: store.pull,
            SuspendEngine: lambda c: engines[c.engine].suspend(
                c, store.release_s(c.engine) if c.release_memory else 0.0
            ),
            UpdateEngine: lambda c: engines[c.engine].update(c, store.update_s(c)),
            ResumeEngine: lambda c: engines[c.engine].resume(c),
            RestartEngine: workers.faults.restart,
            SetTimer: self._set_timer,
            CancelTimer: lambda c: self._timers.discard(c.target),
            StopRun: lambda _: self.clock.stop(),
        }

    # The loop

    def run(self) -> None:
        """Simulate until the controller stops.

        Raises StuckError when it cannot since no engine is left, InvariantError when it never does all the same.
        """
        self.report(RunStarted())
        try:
            self.clock.run()
        except InvariantError as error:
            if any(worker.up for worker in self.workers.engines):
                raise
            raise StuckError(
                f"simulation: no engine is left at {self.clock.now:.0f} s and none is restarted; raise "
                "policy.recovery.max_engine_restarts or faults.engine_mtbf_s"
            ) from error
        write_samples(self.workers, self.clock.now, self._log)

    def report(self, event: Event) -> None:
        """A fact has happened: handle it, and what follows from it at this instant."""
        inbox = self._inbox
        inbox.append(event)
        if self._handling:
            return
        self._handling = True
        now = self.clock.now
        log, handle, execute = self._log, self._handle, self._execute
        while inbox:
            event = inbox.popleft()
            seq = log.event(now, event)
            commands = handle(event, now)
            if commands:
                log.commands(now, commands, seq)
                for command in commands:
                    execute[type(command)](command)
            self.events += 1
            if type(event) is TrainingEnded:
                self._step_ended(event)
        self._handling = False

    def _step_ended(self, event: TrainingEnded) -> None:
        if not self.controller.state.stopped:
            write_samples(self.workers, self.clock.now, self._log)
        if self._on_step is not None:
            self._on_step(event.version, self.clock.now)

    # Small commands

    def _set_timer(self, command: SetTimer) -> None:
        self._timers.add(command.id)
        self.clock.after(command.delay_s, self._timer_fired, command.id)

    def _timer_fired(self, call: Call[int]) -> None:
        command_id = call.payload
        if command_id in self._timers:
            self._timers.remove(command_id)
            self.report(TimerFired(command_id=command_id))
