"""The executor's driver: what workers report goes to the controller, what it orders goes to the workers.

It decides nothing: no retry, no restart, no fallback. It runs on one asyncio loop, by any clock, with any worker set.
An exception of a worker, of a call or of the controller ends the run; nothing is left hanging.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rollart.domain.commands import StopRun
from rollart.domain.errors import InvariantError, RunInterrupted, StuckError
from rollart.domain.events import Event, RunResumed, RunStarted, TrainingEnded
from rollart.exec.carried import CarriedCounters
from rollart.exec.clocks import RunClock
from rollart.exec.ports import Desk, ResumePoint, WorkerFactory
from rollart.runlog.samples import Sample
from rollart.sched.controller import Controller
from rollart.sched.dispatch import Dispatch, Log
from rollart.sched.state import EngineStatus

OnStep = Callable[[int, float], None]
"""Told the version that a training step made, and the time of the run."""


class SampledLog(Log, Protocol):
    """A log that also takes samples."""

    def sample(self, time_s: float, sample: Sample) -> None:
        """Log a reading of counters."""
        ...


class Driver:
    """One run on workers that answer by messages."""

    def __init__(
        self,
        controller: Controller,
        log: SampledLog,
        clock: RunClock,
        make_workers: WorkerFactory,
        *,
        folder: Path | None = None,
        on_step: OnStep | None = None,
        resume: ResumePoint | None = None,
        counters: CarriedCounters | None = None,
    ) -> None:
        """With `resume` the run goes on from there; `counters` have what was counted before."""
        self.controller = controller
        self._resume = resume
        self._counters = counters or CarriedCounters()
        self._log = log
        self._clock = clock
        self._on_step = on_step
        self._dispatch = Dispatch(controller, log, lambda: clock.now, self._step_ended)
        self._failed = False
        self.workers = make_workers(Desk(clock=clock, report=self.report, fail=self.fail, folder=folder))

    @property
    def events(self) -> int:
        """Facts handled so far."""
        return self._dispatch.events

    def report(self, event: Event) -> None:
        """A fact has happened; after an error nothing is handled any more."""
        if self._failed:
            return
        try:
            self._dispatch.report(event)
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the run with an error; the first one counts."""
        self._failed = True
        self._clock.fail(error)

    def interrupt(self) -> None:
        """End the run where it is; `run` raises RunInterrupted."""
        done = self.controller.state.trained
        self.fail(RunInterrupted(f"the run was stopped after step {done}; go on with --resume"))

    async def run(self) -> None:
        """Drive until the controller stops the run.

        Raises what ended it early: StuckError when no engine is left, RunInterrupted, or an error of a worker.
        """
        try:
            await self._begin()
            await self._let_time_pass()
            self._write_samples()
        finally:
            self._failed = True
            await self.workers.stop()

    async def _begin(self) -> None:
        if self._resume is None:
            await self.workers.start()
        else:
            await self.workers.resume(self._resume)
        self._dispatch.carry_out_by({**self.workers.orders(), StopRun: lambda _: self._clock.stop()})
        self.report(RunStarted() if self._resume is None else RunResumed())

    async def _let_time_pass(self) -> None:
        try:
            await self._clock.run()
        except InvariantError as error:
            if any(engine.status is not EngineStatus.REMOVED for engine in self.controller.state.engines):
                raise
            raise StuckError(
                f"run: no engine is left at {self._clock.now:.0f} s and none is restarted; raise "
                "policy.recovery.max_engine_restarts"
            ) from error

    def _step_ended(self, event: TrainingEnded) -> None:
        if not self.controller.state.stopped:
            self._write_samples()
        if self._on_step is not None:
            self._on_step(event.version, self._clock.now)

    def _write_samples(self) -> None:
        """All counters, at one time: the log's readers take what was sampled together for one reading."""
        now_s = self._clock.now
        for sample in self.workers.samples():
            self._log.sample(now_s, self._counters.plus(sample))
