"""`execute`: a job and its workers in, a run log and its statistics out."""

import asyncio
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollart.domain.job import Job
from rollart.exec.clocks import RunClock
from rollart.exec.driver import Driver, OnStep
from rollart.exec.ports import WorkerFactory
from rollart.runlog.header import RunHeader
from rollart.runlog.reducer import Reducer
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import RunLogWriter, Sink
from rollart.sched.controller import Controller
from rollart.sched.run_header import run_header
from rollart.sched.setup import controller_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who works, and by which clock; both are made on the event loop of the run."""

    make_clock: Callable[[float], RunClock]
    """A clock that begins at so many seconds of the run."""
    make_workers: Callable[[Any], WorkerFactory]
    """Workers that live by that clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverUse:
    """What the driver itself took, with the workers that live in its process."""

    wall_s: float
    cpu_s: float
    events: int
    turns: int
    peak_rss_mb: float

    @property
    def turns_per_s(self) -> float:
        """Turns per second of wall time."""
        return self.turns / self.wall_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A finished run."""

    header: RunHeader
    statistics: RunStatistics
    use: DriverUse
    figures: Mapping[str, Any]
    """What the workers have to add to the summary."""


def execute(
    job: Job,
    crew: Crew,
    *,
    log_path: Path | None = None,
    code_version: str = "",
    on_step: OnStep | None = None,
    sinks: tuple[Sink, ...] = (),
) -> Execution:
    """Run a job; the run log goes to `log_path`, complete or not at all.

    Ctrl-C ends the run with RunInterrupted.
    """
    config = controller_config(job)
    header = run_header(job, config, driver="exec", code_version=code_version)
    reducer = Reducer(header)
    started_s, cpu_s = time.perf_counter(), time.process_time()

    async def drive(log: RunLogWriter) -> Driver:
        clock = crew.make_clock(0.0)
        driver = Driver(Controller(config), log, clock, crew.make_workers(clock), on_step=on_step)
        with _interruptible(driver):
            await driver.run()
        return driver

    with RunLogWriter(log_path, header, (reducer, *sinks)) as log:
        driver = asyncio.run(drive(log))
    statistics = reducer.statistics()
    use = DriverUse(
        wall_s=time.perf_counter() - started_s,
        cpu_s=time.process_time() - cpu_s,
        events=driver.events,
        turns=statistics.turns,
        peak_rss_mb=_peak_rss_mb(),
    )
    return Execution(header=header, statistics=statistics, use=use, figures=driver.workers.figures())


class _interruptible:
    """While the block runs, the first Ctrl-C ends the run in good order; a second one does what it always does."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Signals can be handled in the main thread only.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            self._loop.add_signal_handler(signal.SIGINT, self._interrupt)

    def _interrupt(self) -> None:
        self._loop.remove_signal_handler(signal.SIGINT)
        self._driver.interrupt()

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            self._loop.remove_signal_handler(signal.SIGINT)


def _peak_rss_mb() -> float:
    """Largest resident set of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
