"""`execute`: a job and its workers in, a run log and its statistics out."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollart.domain.job import Job
from rollart.exec.clocks import RunClock
from rollart.exec.driver import Driver, OnStep
from rollart.exec.interruption import interruptible
from rollart.exec.keeping import Keeper
from rollart.exec.ports import WorkerFactory
from rollart.exec.restoring import Restored, restore
from rollart.exec.saved_run import SavedRun
from rollart.runlog.header import RunHeader
from rollart.runlog.reducer import Reducer
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import RunLogWriter, Sink
from rollart.sched.config import ControllerConfig
from rollart.sched.controller import Controller
from rollart.sched.run_header import run_header
from rollart.sched.run_use import RunUse, peak_rss_mb
from rollart.sched.setup import controller_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who works, and by which clock; both are made on the event loop of the run."""

    make_clock: Callable[[float], RunClock]
    """A clock that begins at so many seconds of the run."""
    make_workers: Callable[[Any], WorkerFactory]
    """Workers that live by that clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverUse(RunUse):
    """The same with the CPU time."""

    cpu_s: float


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
    saved: SavedRun | None = None,
    resume: bool = False,
) -> Execution:
    """Run a job; the run log goes to `log_path`, complete or not at all.

    `saved`: where the run is kept while it is under way; with `resume` it goes on from there. Ctrl-C ends the run with
    RunInterrupted.
    """
    config = controller_config(job)
    header = run_header(job, config, driver="exec", code_version=code_version)
    reducer = Reducer(header)
    started_s, cpu_s = time.perf_counter(), time.process_time()
    with RunLogWriter(log_path, header, (reducer, *sinks)) as log:
        restored = _restored(config, header, log, saved, resume=resume)
        driver = None
        if restored.controller.state.stopped:
            # It was over when its driver died, but for its last commands.
            Keeper(saved, log, restored).close(None)
        else:
            driver = asyncio.run(_drive(crew, restored, log, saved, on_step))
    statistics = reducer.statistics()
    use = DriverUse(
        wall_s=time.perf_counter() - started_s,
        cpu_s=time.process_time() - cpu_s,
        events=driver.events if driver else 0,
        turns=statistics.turns,
        peak_rss_mb=peak_rss_mb(),
    )
    figures = driver.workers.figures() if driver else {}
    return Execution(header=header, statistics=statistics, use=use, figures=figures)


def _restored(
    config: ControllerConfig, header: RunHeader, log: RunLogWriter, saved: SavedRun | None, *, resume: bool
) -> Restored:
    """The run so far: nothing, or what was saved."""
    if saved is not None and resume:
        saved.check(header)
        return restore(saved, config, log)
    if saved is not None:
        saved.begin(header)
    return Restored(controller=Controller(config))


async def _drive(
    crew: Crew, restored: Restored, log: RunLogWriter, saved: SavedRun | None, on_step: OnStep | None
) -> Driver:
    keeper = Keeper(saved, log, restored)

    def step_ended(version: int, now: float) -> None:
        keeper.step_ended(version)
        if on_step is not None:
            on_step(version, now)

    error: BaseException | None = None
    try:
        clock = crew.make_clock(restored.time_s)
        driver = Driver(
            restored.controller,
            keeper.log,
            clock,
            crew.make_workers(clock),
            folder=keeper.workers_folder,
            on_step=step_ended,
            resume=restored.point() if restored.records else None,
            counters=restored.counters,
        )
        with interruptible(driver.interrupt):
            await driver.run()
        return driver
    except BaseException as raised:
        error = raised
        raise
    finally:
        keeper.close(error)
