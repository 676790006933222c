"""A plan with engines of another size: on one pool half as many that are twice as large, or twice as many of half.

Larger engines have fewer requests each and a shorter time between two tokens, smaller ones the better rate. Where the
model sees nearly a tie between them, the longest trajectories of a batch decide, of which it knows least.
"""

from collections.abc import Iterator
from dataclasses import replace

from rollart.domain.cluster import Cluster
from rollart.domain.plan import EngineGroup, Plan, Role
from rollart.sched.placement.simplified import simplified


def resized(plan: Plan, cluster: Cluster) -> Iterator[Plan]:
    """Each pool's engines doubled and halved in turn, in the plan with fewer groups; shares are left to the router."""
    base = simplified(plan) or plan
    for pool in dict.fromkeys(group.pool for group in base.placement.engine_groups):
        most = cluster.pools[pool].devices_per_node
        for larger in (True, False):
            changed = _changed(base, pool, most, larger=larger)
            if changed is not None:
                yield changed


def _changed(plan: Plan, pool: str, most: int, *, larger: bool) -> Plan | None:
    """The plan with all generating engines of a pool in the other size; None where one cannot have it."""
    groups: list[EngineGroup] = []
    names: dict[str, tuple[str, ...]] = {}
    for group in plan.placement.engine_groups:
        made = [group]
        if group.pool == pool and group.role is Role.BOTH:
            made = _larger(group) if larger else _smaller(group)
            if not made or made[0].tensor_parallel > most:
                return None
        groups += made
        names[group.name] = tuple(one.name for one in made)
    if groups == list(plan.placement.engine_groups):
        return None
    affinity = {
        task: tuple(new for name in old for new in names[name]) for task, old in plan.placement.affinity.items()
    }
    placement = replace(plan.placement, engine_groups=tuple(groups), affinity=affinity, shares={})
    return replace(plan, placement=placement)


def _larger(group: EngineGroup) -> list[EngineGroup]:
    """Half as many of twice the size; of an odd number one stays as it is."""
    pairs, alone = divmod(group.engines, 2)
    if not pairs:
        return []
    return [_of_size(group, 2 * group.tensor_parallel, pairs), *([replace(group, engines=1)] if alone else [])]


def _smaller(group: EngineGroup) -> list[EngineGroup]:
    """Twice as many of half the size."""
    size, odd = divmod(group.tensor_parallel, 2)
    return [] if odd else [_of_size(group, size, 2 * group.engines)]


def _of_size(group: EngineGroup, size: int, engines: int) -> EngineGroup:
    return replace(
        group,
        name=f"{group.name}-as-tp{size}",
        engines=engines,
        tensor_parallel=size,
        expert_parallel=size if group.expert_parallel > 1 else 1,
    )
