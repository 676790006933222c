"""What every way of planning starts from: the demand of the tasks, the engines and the trainers that fit."""

from dataclasses import dataclass, replace

from rollart.domain.errors import CapacityError
from rollart.domain.job import Job
from rollart.sched.placement.columns import EngineKind, engine_kinds
from rollart.sched.placement.demand import TaskDemand, demands
from rollart.sched.placement.grid import PlanGrid
from rollart.sched.placement.trainers import TrainerOption, trainer_options
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A job's building blocks."""

    job: Job
    demands: tuple[TaskDemand, ...]
    kinds: tuple[EngineKind, ...]
    trainers: tuple[TrainerOption, ...]

    @property
    def grid(self) -> PlanGrid:
        """The grid of plans over them; trainers that leave no room for an engine are not in it."""
        sizes: dict[str, tuple[int, ...]] = {}
        for kind in self.kinds:
            sizes[kind.pool] = (*sizes.get(kind.pool, ()), kind.tensor_parallel)
        grid = PlanGrid(job=self.job, trainers=(), tensor_parallel=sizes)
        least = {pool: min(each) for pool, each in sizes.items()}
        placed = (option.placement for option in self.trainers)
        return replace(grid, trainers=tuple(trainer for trainer in placed if grid.groups(trainer, least)))

    def least_size(self, pool: str) -> int:
        """Tensor parallelism of the smallest engine that fits a pool; 0 where none does."""
        return min((kind.tensor_parallel for kind in self.kinds if kind.pool == pool), default=0)


def ground_of(job: Job, workload: Workload) -> Ground:
    """The building blocks of a job; CapacityError where there is no engine or no trainer."""
    asked = demands(job, workload)
    kinds, trainers = engine_kinds(job), trainer_options(job, asked)
    if not kinds or not trainers:
        raise CapacityError(f"plan: {'no engine' if not kinds else 'no trainer'} for {job.model.name} fits any pool")
    return Ground(job=job, demands=tuple(asked), kinds=tuple(kinds), trainers=tuple(trainers))
