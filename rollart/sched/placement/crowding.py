"""Crowding: a plan that admits more trajectories than the prefix caches of its engines hold.

The model lets engines work at the concurrency that suits them best. Nothing but environment slots holds admission to
that: where a step waits for its rollout, all that the policy admits is under way. If those contexts outgrow the caches,
they push each other out, and every turn prefills its history.
"""

from dataclasses import replace

from rollart.domain.plan import EngineGroup, Plan, Role
from rollart.sched.placement.instance import Instance

_BEYOND = 1.1
"""Contexts over room from which on caches are taken as lost; below, some are."""


def crowded(instance: Instance, plan: Plan) -> bool:
    """Whether a rollout that is waited for outgrows the caches; `instance` has the plan's rollout groups as its kinds.

    Not where engines drain, whose points know their load, nor where slots keep trajectories out.
    """
    under_way = instance.composition.under_way
    admitted = sum(demand.starts for demand in instance.demands) * under_way
    if instance.composition.barrier or plan.placement.environment_slots < admitted:
        return False
    held = sum(demand.starts * demand.held_tokens for demand in instance.demands) * under_way
    groups = [group for group in plan.placement.engine_groups if group.role is not Role.JUDGE]
    room = sum(
        kind.costs.kv_capacity_tokens * group.engines
        for kind, group in zip(instance.kinds, groups, strict=True)
        if group.role is not Role.PREFILL
    )
    return held > _BEYOND * room


def without_caches(plan: Plan) -> Plan:
    """The plan with engines that prefill the history in every turn."""

    def changed(group: EngineGroup) -> EngineGroup:
        return group if group.role is Role.JUDGE else replace(group, prefix_caching=False)

    groups = tuple(changed(group) for group in plan.placement.engine_groups)
    return replace(plan, placement=replace(plan.placement, engine_groups=groups))
