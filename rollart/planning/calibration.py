"""Finds how far a scenario's costs are off on the machines that a run has used.

The run's own trajectories are played once more in a simulation of the same plan. The mean iteration of the engines of
each pool is compared, and the trainer's time per token; the factors between the two go onto the costs, and the
simulation is repeated until it agrees, since slower engines have larger batches. Environments and rewards take the
times that the run has recorded, in which their waits for cores and workers are, so nothing waits for those once more.
Weight updates are not calibrated.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

from rollart.domain.calibration import Calibration
from rollart.domain.errors import InputError
from rollart.domain.job import Job
from rollart.domain.task import EnvironmentNeeds, RewardKind, RewardNeeds
from rollart.runlog.header import RunHeader
from rollart.runlog.reader import read_header, windows
from rollart.runlog.reducer import Reducer
from rollart.runlog.samples import EngineSample
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.window import Window
from rollart.scenario.scenario import Scenario
from rollart.sim import simulate
from rollart.workload.importers import ImportOptions, TraceImport
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trace_writer import write_trace
from rollart.workload.trajectory import Workload

CLOSE_ENOUGH = 0.01
"""Relative difference of times at which factors are taken as found."""
MOST_ROUNDS = 12
_NO_CORE = 1e-9
_ENOUGH = 1_000_000
"""Reward workers, so that none is waited for."""
TRAINER = "trainer"

Progress = Callable[[int, int], None]
"""Told the simulations that are done, and the most that there can be."""
WorkTimes = Mapping[str, float]
"""Pool -> mean seconds of an iteration of its engines; `TRAINER` -> seconds of training per trained token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a run or a simulation took."""

    work_s: WorkTimes
    step_s: float
    """Mean step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """Factors; and what was measured, what is simulated with the costs as they are, and with the factors."""

    calibration: Calibration
    measured: Observed
    before: Observed
    after: Observed
    rounds: int
    """Simulations that were made."""
    converged: bool
    """Whether the last of them agrees with the run, within `CLOSE_ENOUGH`."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


class _Iterations:
    """A sink that keeps how long engines were busy, and with how many iterations."""

    def __init__(self, header: RunHeader) -> None:
        self._pool = {entry.engine: entry.pool for entry in header.engines}
        self._readings: dict[int, list[tuple[float, float, int]]] = defaultdict(list)

    def consume(self, window: Window) -> None:
        """Take the next window."""
        batch = window.batches.get(EngineSample)
        if batch is not None:
            columns = (batch.column(name) for name in ("engine", "busy_s", "iterations"))
            for time_s, engine, busy_s, iterations in zip(batch.time_s, *columns, strict=True):
                self._readings[int(engine)].append((float(time_s), float(busy_s), int(iterations)))

    def mean_s(self, begin_s: float) -> dict[str, float]:
        """Pool -> mean seconds of the iterations after `begin_s`, for pools whose engines had any."""
        busy_s: dict[str, float] = defaultdict(float)
        count: dict[str, int] = defaultdict(int)
        for engine, readings in self._readings.items():
            before = [reading for reading in readings if reading[0] <= begin_s]
            _, first_s, first = before[-1] if before else (0.0, 0.0, 0)
            busy_s[self._pool[engine]] += readings[-1][1] - first_s
            count[self._pool[engine]] += readings[-1][2] - first
        return {pool: busy_s[pool] / number for pool, number in count.items() if number}


def calibrate(scenario: Scenario, log_path: Path, progress: Progress | None = None) -> CalibrationReport:
    """Factors on the costs of a scenario (with the plan that was run) from a run's log.

    Raises InputError where the run is another one, or was too short; RunLogError where there is no readable log.
    """
    job = replace(scenario.job(), calibration=Calibration())
    header = read_header(log_path)
    _refuse_other_runs(job, header)
    reducer, iterations = Reducer(header), _Iterations(header)
    for window in windows(log_path):
        reducer.consume(window)
        iterations.consume(window)
    run = reducer.statistics()
    if len(run.counted_steps) < 2:
        raise InputError(f"{log_path}: {len(run.steps)} steps, {header.warmup_steps} of warm-up; must leave 2 or more")
    job = replace(_without_queues(job), steps=len(run.steps), warmup_steps=header.warmup_steps)
    measured = _observed(run, iterations)
    with tempfile.TemporaryDirectory() as folder:
        workload = _played_again(log_path, Path(folder), job.seed)
        found, rounds = Calibration(), 1
        first = last = _simulated(job, workload, header)
        while (off := _off(measured, last)) > CLOSE_ENOUGH and rounds < MOST_ROUNDS:
            found = _corrected(found, measured, last)
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
    planned = [group.pool for group in placement.engine_groups for _ in range(group.engines)]
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
    iterations = _Iterations(header)
    return _observed(simulate(job, workload, sinks=(iterations,)).statistics, iterations)


def _observed(run: RunStatistics, iterations: _Iterations) -> Observed:
    steps = run.counted_steps
    training_s = sum(step.busy_s[Stage.TRAINING] for step in steps)
    per_token_s = training_s / sum(step.tokens for step in steps)
    return Observed(
        work_s=iterations.mean_s(steps[0].begin_s) | {TRAINER: per_token_s},
        step_s=fmean(step.duration_s for step in steps),
    )


def _ratios(measured: Observed, simulated: Observed) -> dict[str, float]:
    return {key: took_s / simulated.work_s[key] for key, took_s in measured.work_s.items() if key in simulated.work_s}


def _off(measured: Observed, simulated: Observed) -> float:
    return max(abs(log(ratio)) for ratio in _ratios(measured, simulated).values())


def _corrected(found: Calibration, measured: Observed, simulated: Observed) -> Calibration:
    ratios = _ratios(measured, simulated)
    trainer = found.trainer * ratios.pop(TRAINER)
    engines = {pool: found.engines.get(pool, 1.0) * ratio for pool, ratio in ratios.items()}
    return Calibration(engines=engines, trainer=trainer)
