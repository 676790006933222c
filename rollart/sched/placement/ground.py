"""What every other way of planning starts from: the engines and the trainers that fit, and how fast they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollart.domain.errors import CapacityError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Role
from rollart.domain.planning import TrainerRule
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand, demands, samples
from rollart.sched.placement.grid import PlanGrid
from rollart.sched.placement.kinds import EngineKind, engine_kinds
from rollart.sched.placement.points import points
from rollart.sched.placement.trainers import TrainerOption, trainer_options
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A job's building blocks."""

    job: Job
    engines: tuple[EngineGroup, ...]
    """Groups of one engine, for every pool and tensor parallelism that fit."""
    batches_per_s: tuple[float, ...]
    """Batches of all tasks that each of these generates in a second, each task at its best concurrency."""
    trainers: tuple[TrainerOption, ...]

    @property
    def grid(self) -> PlanGrid:
        """The grid of plans over them; trainers that leave no room for an engine are not in it."""
        grid = PlanGrid(job=self.job, trainers=(), engines=self.engines)
        least = {pool: self.least_size(pool) for pool in self.job.cluster.pools}
        placed = (option.placement for option in self.trainers)
        return replace(grid, trainers=tuple(trainer for trainer in placed if grid.groups(trainer, least)))

    def least_size(self, pool: str) -> int:
        """Tensor parallelism of the smallest engine that fits a pool; 0 where none does."""
        return min((engine.tensor_parallel for engine in self.engines if engine.pool == pool), default=0)

    def rate(self, pool: str, size: int) -> float:
        """Batches that an engine of a size generates in a second."""
        return next(
            rate
            for engine, rate in zip(self.engines, self.batches_per_s, strict=True)
            if (engine.pool, engine.tensor_parallel) == (pool, size)
        )


def ground_of(job: Job, workload: Workload) -> Ground:
    """The building blocks of a job; CapacityError where there is no engine or no trainer."""
    redundant = Composition.of(job.plan.policy).redundant_members
    asked = demands(job, samples(job, workload, redundant), redundant)
    kinds = [kind for kind in engine_kinds(job, (Role.BOTH,), ()) if kind.group.expert_parallel == 1]
    trainers = trainer_options(job, asked, TrainerRule())
    if not kinds or not trainers:
        raise CapacityError(f"plan: {'no engine' if not kinds else 'no trainer'} for {job.model.name} fits any pool")
    return Ground(
        job=job,
        engines=tuple(replace(kind.group, name=kind.name) for kind in kinds),
        batches_per_s=_batches_per_s(job, kinds, asked),
        trainers=tuple(trainers),
    )


def _batches_per_s(job: Job, kinds: Sequence[EngineKind], asked: Sequence[TaskDemand]) -> tuple[float, ...]:
    best: dict[tuple[int, int], float] = {}
    for point in points(list(kinds), list(asked), job.plan.placement.kv_return):
        key = (point.kind, point.task)
        best[key] = max(best.get(key, 0.0), point.rate)
    seconds = [0.0] * len(kinds)
    for (kind, task), rate in best.items():
        seconds[kind] += asked[task].starts / rate
    return tuple(1.0 / total_s for total_s in seconds)
