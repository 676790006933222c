"""The simulator's driver: reports what happens to the controller and carries out what it orders.

Equal-time order is total: SimPy's calendar by (time, priority, sequence), and facts that follow from one instant are
handled first come first served (`rollart.sched.dispatch`).
"""

from collections.abc import Callable

from rollart.costs.interface import TrainingCosts
from rollart.domain.commands import StopRun
from rollart.domain.errors import InvariantError, StuckError
from rollart.domain.events import RunStarted, TrainingEnded
from rollart.domain.job import Job
from rollart.modelled.assembly import EngineKind
from rollart.modelled.sampling import write_samples
from rollart.modelled.workers import Workers
from rollart.runlog.writer import RunLogWriter
from rollart.sched.config import ControllerConfig
from rollart.sched.controller import Controller
from rollart.sched.dispatch import Dispatch
from rollart.sim.clock import SimulatedClock
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
        self.clock = clock = SimulatedClock()
        self.controller = Controller(config)
        self._log = log
        self._on_step = on_step
        self._dispatch = Dispatch(self.controller, log, lambda: clock.now, self._step_ended)
        self.report = self._dispatch.report
        self.workers = Workers(job, workload, kinds, training, clock, self.report)
        self._dispatch.carry_out_by(self.workers.orders() | {StopRun: lambda _: clock.stop()})

    @property
    def events(self) -> int:
        """Facts handled so far."""
        return self._dispatch.events

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

    def _step_ended(self, event: TrainingEnded) -> None:
        if not self.controller.state.stopped:
            write_samples(self.workers, self.clock.now, self._log)
        if self._on_step is not None:
            self._on_step(event.version, self.clock.now)
