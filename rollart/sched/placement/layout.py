"""From engine groups of the model to a plan: names, affinity, shares and environment slots."""

import math
from collections.abc import Mapping
from dataclasses import replace

from rollart.domain.plan import Plan, Role
from rollart.sched.placement.groups import Group
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.trainers import TrainerOption

_SERVED_SHARE = 0.02
"""A group is left out of a task that it does less than this part of."""
_SPARE_SLOTS = 1.05
"""Slots beyond those that are needed, where slots keep the engines from taking more than their caches hold."""


def plan_of(instance: Instance, trainer: TrainerOption, groups: list[Group]) -> Plan:
    """The plan: judges and all that the model does not decide are as in the scenario's own."""
    placement = instance.job.plan.placement
    names = _names(instance, groups)
    made = [
        replace(instance.kinds[group.kind].group, name=name, engines=group.engines)
        for name, group in zip(names, groups, strict=True)
    ]
    judges = [group for group in placement.engine_groups if group.role is Role.JUDGE]
    shares = {demand.task.name: shares_of(d, names, groups) for d, demand in enumerate(instance.demands)}
    return Plan(
        placement=replace(
            placement,
            engine_groups=(*made, *judges),
            trainer=trainer.placement,
            affinity={task: tuple(share) for task, share in shares.items()},
            shares={task: share for task, share in shares.items() if len(share) > 1},
            environment_slots=_slots(instance, groups),
        ),
        policy=instance.policy,
    )


def shares_of(task: int, names: list[str], groups: list[Group]) -> dict[str, float]:
    """Group -> part of a task's trajectories under way that it holds, largest first."""
    running = {name: group.running.get(task, 0.0) for name, group in zip(names, groups, strict=True)}
    total = sum(running.values())
    kept = {name: amount for name, amount in running.items() if amount >= _SERVED_SHARE * total}
    whole = sum(kept.values())
    return {name: amount / whole for name, amount in sorted(kept.items(), key=lambda one: -one[1])}


def _names(instance: Instance, groups: list[Group]) -> list[str]:
    """Names of the kinds, numbered where a kind has several groups."""
    kinds = [instance.kinds[group.kind].name for group in groups]
    return [name if kinds.count(name) == 1 else f"{name}-{kinds[:i].count(name) + 1}" for i, name in enumerate(kinds)]


def _slots(instance: Instance, groups: list[Group]) -> int:
    """All slots, or what is needed where more trajectories would push each other out of the prefix caches."""
    most = instance.slots
    bounds = instance.rules.environment_slots
    admitted: Mapping[int, float] = {
        d: demand.starts * instance.composition.under_way for d, demand in enumerate(instance.demands)
    }
    held = sum(count * instance.demands[d].held_tokens for d, count in admitted.items())
    room = sum(
        instance.kinds[group.kind].costs.kv_capacity_tokens * group.engines
        for group in groups
        if instance.kinds[group.kind].role is not Role.PREFILL
    )
    needed = math.ceil(_SPARE_SLOTS * sum(sum(group.running.values()) for group in groups))
    if held <= room or instance.composition.barrier:
        needed = most
    return max(min(most, needed), 1 if bounds is None else int(bounds.least))
