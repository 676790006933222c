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
    """All plans of a job over the given trainers and engines."""

    job: Job
    trainers: tuple[TrainerPlacement, ...]
    engines: tuple[EngineGroup, ...]
    """Groups of one engine that fit; the size of an engine is its tensor parallelism."""

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
        return tuple(
            replace(engine, engines=self._free(trainer, engine.pool) // engine.tensor_parallel)
            for engine in self.engines
            if sizes.get(engine.pool) == engine.tensor_parallel <= self._free(trainer, engine.pool)
        )

    def plan(
        self, trainer: TrainerPlacement, groups: Sequence[EngineGroup], suits: Sequence[tuple[str, ...]] = ()
    ) -> Plan:
        """A plan of the job; `suits` has the engine groups of each task, none at all: every group suits every task."""
        affinity = {task.name: names for task, names in zip(self.job.tasks, suits, strict=True)} if suits else {}
        placement = replace(
            self.job.plan.placement, engine_groups=tuple(groups), trainer=trainer, affinity=affinity, shares={}
        )
        return replace(self.job.plan, placement=placement)

    def _choices(self, trainer: TrainerPlacement) -> list[list[int]]:
        """Sizes to choose from, by pool; idle is the last."""
        return [[*self._sizes(pool, self._free(trainer, pool)), 0] for pool in self.job.cluster.pools]

    def _sizes(self, pool: str, free: int) -> list[int]:
        return [e.tensor_parallel for e in self.engines if e.pool == pool and e.tensor_parallel <= free]

    def _free(self, trainer: TrainerPlacement, pool: str) -> int:
        """Devices of a pool that a trainer leaves."""
        return self.job.cluster.pools[pool].count - (trainer.devices if trainer.pool == pool else 0)


def _suits(groups: Sequence[EngineGroup]) -> list[tuple[str, ...]]:
    """Each group alone, and all of them where there are several."""
    names = tuple(group.name for group in groups)
    return [(name,) for name in names] + ([names] if len(names) > 1 else [])
