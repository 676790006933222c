"""Finds how far a scenario's costs are off on the machines that a run has used.

The run's own trajectories are played once more in a simulation of the same plan, and what work took is compared: the
mean iteration of the engines of each pool, the trainer's time per token, and the movements of the weights. The first
two give factors, the last give seconds on top; with them the simulation is repeated until it agrees, since slower
engines have larger batches. Environments and rewards take the times that the run has recorded, in which their waits for
cores and workers are, so nothing waits for those once more.
"""

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import log
from pathlib import Path
from typing import Any

from rollart.domain.calibration import Calibration, WeightDelays
from rollart.domain.errors import InputError
from rollart.domain.job import Job
from rollart.domain.task import EnvironmentNeeds, RewardKind, RewardNeeds
from rollart.planning.observed import Observed, Observer
from rollart.runlog.header import RunHeader
from rollart.runlog.reader import read_header, windows
from rollart.runlog.reducer import Reducer
from rollart.scenario.scenario import Scenario
from rollart.sim import simulate
from rollart.workload.importers import ImportOptions, TraceImport
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trace_writer import write_trace
from rollart.workload.trajectory import Workload

CLOSE_ENOUGH = 0.02
"""Relative difference of times at which factors are taken as found."""
MOST_ROUNDS = 16
_DAMPING = 0.5
"""Power of a correction behind the first: faster engines have smaller batches, so a whole correction overshoots."""
_NO_CORE = 1e-9
_ENOUGH = 1_000_000
"""Reward workers, so that none is waited for."""

Progress = Callable[[int, int], None]
"""Told the simulations that are done, and the most that there can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The calibration; and what was measured, what is simulated with the costs as they are, and with it."""

    calibration: Calibration
    measured: Observed
    before: Observed
    after: Observed
    rounds: int
    """Simulations that were made."""
    converged: bool
    """Whether iterations and training of the last of them agree with the run, within `CLOSE_ENOUGH`."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


def calibrate(scenario: Scenario, log_path: Path, progress: Progress | None = None) -> CalibrationReport:
    """Calibrate the costs of a scenario (with the plan that was run) by a run's log.

    Raises InputError where the run is another one, or was too short; RunLogError where there is no readable log.
    """
    job = replace(scenario.job(), calibration=Calibration())
    header = read_header(log_path)
    _refuse_other_runs(job, header)
    reducer, observer = Reducer(header), Observer(header)
    for window in windows(log_path):
        reducer.consume(window)
        observer.consume(window)
    run = reducer.statistics()
    if len(run.counted_steps) < 2:
        raise InputError(f"{log_path}: {len(run.steps)} steps, {header.warmup_steps} of warm-up; must leave 2 or more")
    measured = observer.observed(run)
    job = replace(_without_queues(job), steps=len(run.steps), warmup_steps=header.warmup_steps)
    with tempfile.TemporaryDirectory() as folder:
        workload = _played_again(log_path, Path(folder), job.seed)
        found, rounds = Calibration(), 1
        first = last = _simulated(job, workload, header)
        while (off := _off(measured, last)) > CLOSE_ENOUGH and rounds < MOST_ROUNDS:
            found = _corrected(found, measured, last, 1.0 if rounds == 1 else _DAMPING)
            last = _simulated(replace(job, calibration=found), workload, header)
            rounds += 1
            if progress is not None:
                progress(rounds, MOST_ROUNDS)
    return CalibrationReport(
        calibration=found,
        measured=measured,
        before=first,
        after=last,
        rounds=rounds,
        converged=off <= CLOSE_ENOUGH,
    )


def _refuse_other_runs(job: Job, header: RunHeader) -> None:
    placement = job.plan.placement
    planned = [group.pool for group in placement.engines]
    engines = [entry.pool for entry in header.engines]
    if header.driver != "exec":
        raise InputError("the run is a simulation; give the folder of a real one")
    if (engines, header.trainer.pool) != (planned, placement.trainer.pool):
        raise InputError(
            f"the run had {_counted(engines)} and its trainer on {header.trainer.pool}, the scenario has "
            f"{_counted(planned)} and {placement.trainer.pool}; give the plan that was run with --plan"
        )


def _counted(pools: list[str]) -> str:
    """How many engines are on each pool, in words."""
    return " and ".join(f"{number} engines on {pool}" for pool, number in Counter(pools).items())


def _without_queues(job: Job) -> Job:
    """Environments and rewards only take their time."""
    environment = EnvironmentNeeds(cores=_NO_CORE)
    reward = RewardNeeds(kind=RewardKind.LOCAL, workers=_ENOUGH)
    return replace(job, tasks=tuple(replace(task, environment=environment, reward=reward) for task in job.tasks))


def _played_again(log_path: Path, folder: Path, seed: int) -> Workload:
    path = folder / "run.jsonl"
    write_trace(path, TraceImport([log_path], ImportOptions(format="rollart")))
    return TraceWorkload(TraceReader(path, strict=True), times=None, seed=seed)


def _simulated(job: Job, workload: Workload, header: RunHeader) -> Observed:
    observer = Observer(header)
    return observer.observed(simulate(job, workload, sinks=(observer,)).statistics)


def _ratios(measured: Observed, simulated: Observed) -> dict[str, float]:
    """By pool: measured over simulated iterations, where both had any."""
    both = measured.iteration_s.keys() & simulated.iteration_s.keys()
    return {pool: measured.iteration_s[pool] / simulated.iteration_s[pool] for pool in both}


def _off(measured: Observed, simulated: Observed) -> float:
    ratios = [measured.training_s / simulated.training_s, *_ratios(measured, simulated).values()]
    return max(abs(log(ratio)) for ratio in ratios)


def _corrected(found: Calibration, measured: Observed, simulated: Observed, power: float) -> Calibration:
    ratios = _ratios(measured, simulated)
    delays = {
        name: max(0.0, getattr(found.weights, name) + took_s - simulated.movements_s.get(name, took_s))
        for name, took_s in measured.movements_s.items()
    }
    return Calibration(
        engines={pool: found.engines.get(pool, 1.0) * ratios[pool] ** power for pool in sorted(ratios)},
        trainer=found.trainer * (measured.training_s / simulated.training_s) ** power,
        weights=WeightDelays(**delays),
    )
