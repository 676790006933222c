"""`simulate`: a job and a workload in, a run log and its statistics out."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rollart.costs.job_costs import training_costs
from rollart.domain.events import TurnGenerated
from rollart.domain.job import Job
from rollart.modelled.assembly import engine_kinds
from rollart.runlog.header import RunHeader
from rollart.runlog.reducer import Reducer
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.window import Window
from rollart.runlog.writer import RunLogWriter, Sink
from rollart.sched.run_header import run_header
from rollart.sched.run_use import RunUse, peak_rss_mb
from rollart.sched.setup import controller_config
from rollart.sim.large_pages import LargePages
from rollart.sim.simulation import Simulation
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """A finished simulation."""

    header: RunHeader
    statistics: RunStatistics
    use: RunUse


class _TurnCount:
    """Counts the turns that were generated."""

    def __init__(self) -> None:
        self.turns = 0

    def consume(self, window: Window) -> None:
        """Add the turns of a window."""
        batch = window.batches.get(TurnGenerated)
        self.turns += 0 if batch is None else len(batch)


def simulate(
    job: Job,
    workload: Workload,
    *,
    log_path: Path | None = None,
    code_version: str = "",
    on_step: Callable[[int, float], None] | None = None,
    sinks: tuple[Sink, ...] = (),
) -> SimulationResult:
    """Simulate a job on a workload; the run log goes to `log_path`, complete or not at all.

    `on_step(version, simulated seconds)` is called at the end of every training step. Raises CapacityError when the
    plan does not fit its devices.
    """
    kinds = engine_kinds(job)
    training = training_costs(job)
    config = controller_config(job)
    header = run_header(job, config, driver="sim", code_version=code_version)
    reducer, turns = Reducer(header), _TurnCount()
    started = time.perf_counter()
    with RunLogWriter(log_path, header, (reducer, turns, LargePages(), *sinks)) as log, _no_collections():
        events = _run(Simulation(job, workload, config, kinds, training, log, on_step))
    wall_s = time.perf_counter() - started
    use = RunUse(wall_s=wall_s, events=events, turns=turns.turns, peak_rss_mb=peak_rss_mb())
    return SimulationResult(header=header, statistics=reducer.statistics(), use=use)


def _run(simulation: Simulation) -> int:
    """Run to the end and return the events handled; nobody holds the simulation then, one collection frees it."""
    simulation.run()
    return simulation.events


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the cycle collector still: the small objects that a simulation makes by the million are in no cycles.

    Reference counts free all of them; the collector would walk what is alive, again and again, to find nothing. Its
    workers are in cycles and go when it is over.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
