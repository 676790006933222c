"""A grid of plans, to enumerate or to draw from: what a search without a model of rates would look through.

A plan of the grid has a trainer on some devices of a pool, in its fastest cut; on every pool engines of one tensor
parallelism (or none) that fill what the trainer leaves; and for each task one engine group, or all of them.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Plan, TrainerPlacement


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGrid:
    """All plans of a job over the given trainers and tensor parallelisms."""

    job: Job
    trainers: tuple[TrainerPlacement, ...]
    tensor_parallel: Mapping[str, tuple[int, ...]]
    """Pool -> sizes of engines that fit."""

    def plans(self) -> Iterator[Plan]:
        """Every plan, in one order."""
        for trainer in self.trainers:
            for sizes in itertools.product(*self._choices(trainer)):
                groups = self.groups(trainer, dict(zip(self.job.cluster.pools, sizes, strict=True)))
                if groups:
                    for choice in itertools.product(_suits(groups), repeat=len(self.job.tasks)):
                        yield self.plan(trainer, groups, choice)

    def drawn(self, generator: np.random.Generator) -> Plan:
        """One plan at random: trainer, sizes and the groups of each task, each uniformly."""
        while True:
            trainer = self.trainers[int(generator.integers(len(self.trainers)))]
            sizes = [choices[int(generator.integers(len(choices)))] for choices in self._choices(trainer)]
            groups = self.groups(trainer, dict(zip(self.job.cluster.pools, sizes, strict=True)))
            if groups:
                suits = _suits(groups)
                choice = [suits[int(generator.integers(len(suits)))] for _ in self.job.tasks]
                return self.plan(trainer, groups, choice)

    def groups(self, trainer: TrainerPlacement, sizes: Mapping[str, int]) -> tuple[EngineGroup, ...]:
        """Engines of a size on each pool that fill what a trainer leaves; 0 leaves a pool idle."""
        groups = []
        for name, pool in self.job.cluster.pools.items():
            size = sizes.get(name, 0)
            free = pool.count - (trainer.devices if trainer.pool == name else 0)
            if size and free >= size:
                groups.append(
                    EngineGroup(name=f"{name}-tp{size}", pool=name, engines=free // size, tensor_parallel=size)
                )
        return tuple(groups)

    def plan(
        self, trainer: TrainerPlacement, groups: Sequence[EngineGroup], suits: Sequence[tuple[str, ...]] = ()
    ) -> Plan:
        """A plan of the job; `suits` has the engine groups of each task, none at all: every group suits every task."""
        affinity = {task.name: names for task, names in zip(self.job.tasks, suits, strict=True)} if suits else {}
        placement = replace(self.job.plan.placement, engine_groups=tuple(groups), trainer=trainer, affinity=affinity)
        return replace(self.job.plan, placement=placement)

    def _choices(self, trainer: TrainerPlacement) -> list[list[int]]:
        """Sizes to choose from, by pool; idle is the last."""
        choices = []
        for name, pool in self.job.cluster.pools.items():
            free = pool.count - (trainer.devices if trainer.pool == name else 0)
            choices.append([*(size for size in self.tensor_parallel.get(name, ()) if size <= free), 0])
        return choices


def _suits(groups: Sequence[EngineGroup]) -> list[tuple[str, ...]]:
    """Each group alone, and all of them where there are several."""
    names = tuple(group.name for group in groups)
    return [(name,) for name in names] + ([names] if len(names) > 1 else [])
