"""A plan that rolls out on one pool less, where it has several.

Where engines of different devices share the work of a small batch, its longest trajectories decide on whatever engine
they are, and weights have to reach all of them; the model counts the devices' rates. So the best plan on fewer kinds of
devices is worth a simulation if the model does not expect it to be far behind.
"""

from collections.abc import Iterator
from dataclasses import replace

from rollart.domain.plan import Plan, Role
from rollart.sched.placement.simplified import simplified

FAR = 1.25
"""Expected to take so many times as long, or more, it is not worth a simulation."""


def narrowed(plan: Plan) -> Iterator[Plan]:
    """The plan without each of its rollout pools in turn, with fewer groups; shares are left to the router.

    A task that has no engines left may go to all that stay.
    """
    base = simplified(plan) or plan
    rollout = [group for group in base.placement.engine_groups if group.role is not Role.JUDGE]
    pools = dict.fromkeys(group.pool for group in rollout)
    for pool in pools if len(pools) > 1 else ():
        lost = {group.name for group in rollout if group.pool == pool}
        if all(group.role is Role.PREFILL for group in rollout if group.name not in lost):
            continue
        yield _without(base, lost)


def _without(plan: Plan, lost: set[str]) -> Plan:
    placement = plan.placement
    groups = tuple(group for group in placement.engine_groups if group.name not in lost)
    left = {task: tuple(name for name in names if name not in lost) for task, names in placement.affinity.items()}
    affinity = {task: names for task, names in left.items() if names}
    return replace(plan, placement=replace(placement, engine_groups=groups, affinity=affinity, shares={}))
