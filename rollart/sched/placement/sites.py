"""Sites of the search: a policy, a pool that trains, and the slowest path that new weights may take.

Within a site only the duration of a step is open. A step that is longer needs a smaller trainer, leaves more devices
and a longer window to the rollout, so what can be kept in a step can be kept in every longer one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rollart.costs.job_costs import fetch_s
from rollart.domain.plan import Role
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.model import Room
from rollart.sched.placement.program import INFINITY
from rollart.sched.placement.rent import price_per_hour
from rollart.sched.placement.trainers import TrainerOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the search looks; `kinds` are those that get their weights in time."""

    instance: Instance
    trainers: tuple[TrainerOption, ...]
    """On one pool, by devices; each is faster than the ones before."""
    kinds: frozenset[int]
    fetch_s: float
    load_s: float

    def window_s(self, trainer: TrainerOption, step_s: float) -> float:
        """What a step leaves to the rollout beside a trainer."""
        return self.instance.composition.window_s(step_s, trainer.step_s, self.fetch_s, self.load_s)

    def least_s(self) -> float:
        """No step is shorter: training and update alone."""
        composition = self.instance.composition
        return min(composition.step_s(0.0, one.step_s, self.fetch_s, self.load_s) for one in self.trainers)

    def choices(self, step_s: float) -> Iterator[tuple[TrainerOption, float]]:
        """Trainers that a step leaves a window to, with the window.

        The smallest stands for all where the window does not depend on it.
        """
        seen: set[float] = set()
        for trainer in self.trainers:
            window_s = self.window_s(trainer, step_s)
            if window_s > 0 and window_s not in seen:
                seen.add(window_s)
                yield trainer, window_s

    def room(self, trainer: TrainerOption) -> Room | None:
        """What a trainer leaves; None where it is more than there is, or more than the budget."""
        budget = self.instance.rules.limits.budget_per_hour
        free = free_devices(self.instance, trainer)
        if min(free.values()) < 0:
            return None
        left = INFINITY if budget is None else budget - self.fixed_price(trainer)
        if left < 0:
            return None
        return Room(free=free, kinds=self.kinds, price_per_hour=left)

    def fixed_price(self, trainer: TrainerOption) -> float:
        """Price of an hour of the trainer, judges and the environments' cores."""
        taken = judge_devices(self.instance)
        pool = trainer.placement.pool
        taken[pool] = taken.get(pool, 0) + trainer.placement.devices
        return price_per_hour(self.instance.job.cluster, taken)


def judge_devices(instance: Instance) -> dict[str, int]:
    """Devices of the judges, which stay as they are placed."""
    taken: dict[str, int] = {}
    for group in instance.job.plan.placement.engine_groups:
        if group.role is Role.JUDGE:
            taken[group.pool] = taken.get(group.pool, 0) + group.devices
    return taken


def free_devices(instance: Instance, trainer: TrainerOption) -> dict[str, int]:
    """Devices of each pool beside a trainer and the judges."""
    judges = judge_devices(instance)
    free = {name: pool.count - judges.get(name, 0) for name, pool in instance.job.cluster.pools.items()}
    free[trainer.placement.pool] -= trainer.placement.devices
    return free


def sites(instance: Instance, trainers: list[TrainerOption]) -> list[Site]:
    """All sites under one policy."""
    found = []
    for pool in dict.fromkeys(option.placement.pool for option in trainers):
        there = tuple(option for option in trainers if option.placement.pool == pool)
        for fetched_s, loaded_s, kinds in _paths(instance, there[0]):
            found.append(
                Site(instance=instance, trainers=there, kinds=frozenset(kinds), fetch_s=fetched_s, load_s=loaded_s)
            )
    return found


def _paths(instance: Instance, trainer: TrainerOption) -> Iterator[tuple[float, float, list[int]]]:
    """Pairs of the longest fetch and the longest load, with the kinds within both; each adds a kind to the others."""
    kinds, job = instance.kinds, instance.job
    times = []
    for kind in kinds:
        bytes_moved = kind.costs.weight_bytes
        times.append((fetch_s(job, trainer.placement, [kind.pool], bytes_moved), kind.load_s))
    for fetched_s in sorted({fetched for fetched, _ in times}):
        for loaded_s in sorted({loaded for _, loaded in times}):
            within = [e for e, (fetched, loaded) in enumerate(times) if fetched <= fetched_s and loaded <= loaded_s]
            slowest = (max((times[e][0] for e in within), default=0.0), max((times[e][1] for e in within), default=0.0))
            if within and slowest == (fetched_s, loaded_s):
                yield fetched_s, loaded_s, within
