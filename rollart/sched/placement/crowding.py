"""Crowding: a plan that admits more trajectories than the prefix caches of its engines hold.

The model lets engines work at the concurrency that suits them best. Nothing but environment slots holds admission to
that: where a step waits for its rollout, all that the policy admits is under way. If those contexts outgrow the caches,
they push each other out, and a turn prefills its history, or the part of it that is gone.

Which caches are too small is told by sets of engine groups, since a task may go to some groups alone: a set holds at
least the contexts of those tasks that can go nowhere else. The set that is fullest in proportion to its room comes
first; it and its tasks are put aside, and the rest is looked at again. A router can do no better than that, so the
pressures are the least there can be.
"""

from collections.abc import Iterator
from dataclasses import replace

from rollart.domain.plan import Plan, Role
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.points import points
from rollart.sched.placement.predict import allowed_pairs, rollout_groups

_FIRST_LOST, _ALL_LOST = 1.1, 2.0
"""Contexts over room at which histories begin to be lost, and from which on all are; between them in proportion. Both
were chosen after looking at simulations of random plans."""


def crowded(instance: Instance, plan: Plan) -> Instance:
    """The data with caches that keep what they can while a step waits for its rollout.

    `instance` has the plan's rollout groups as its kinds. It stays as it is where engines drain, whose points know
    their load, and where slots keep trajectories out.
    """
    admitted = sum(demand.starts for demand in instance.demands) * instance.composition.under_way
    if instance.composition.barrier or plan.placement.environment_slots < admitted:
        return instance
    kept = [kept_part(pressure) for pressure in pressures(_contexts(instance, plan), _rooms(instance, plan))]
    if min(kept) == 1.0:
        return instance
    kinds = tuple(replace(kind, kept=part) for kind, part in zip(instance.kinds, kept, strict=True))
    changed = tuple(points(list(kinds), list(instance.demands), instance.job.plan.placement.kv_return))
    return replace(instance, kinds=kinds, points=changed)


def kept_part(pressure: float) -> float:
    """Part of the histories that a cache keeps, 0 to 1, by contexts over room."""
    return min(1.0, max(0.0, (_ALL_LOST - pressure) / (_ALL_LOST - _FIRST_LOST)))


def pressures(contexts: dict[frozenset[int], float], rooms: tuple[float, ...]) -> tuple[float, ...]:
    """Contexts over room of each group; `contexts` are tokens that may go to any of some groups, `rooms` tokens."""
    found = [0.0] * len(rooms)
    left = dict(contexts)
    while left:
        full = max(_unions(left), key=lambda groups: (_pressure(left, groups, rooms), len(groups)))
        for group in full:
            found[group] = _pressure(left, full, rooms)
        # What could also go elsewhere goes there: those groups are less full.
        rest: dict[frozenset[int], float] = {}
        for groups, tokens in left.items():
            if groups - full:
                rest[groups - full] = rest.get(groups - full, 0.0) + tokens
        left = rest
    return tuple(found)


def _unions(contexts: dict[frozenset[int], float]) -> Iterator[frozenset[int]]:
    """Every union of sets of groups."""
    found: set[frozenset[int]] = set()
    for groups in contexts:
        found |= {groups, *(groups | other for other in found)}
    yield from sorted(found, key=sorted)


def _pressure(contexts: dict[frozenset[int], float], groups: frozenset[int], rooms: tuple[float, ...]) -> float:
    """Tokens that can go nowhere else, over the room of these groups."""
    return sum(tokens for own, tokens in contexts.items() if own <= groups) / sum(rooms[group] for group in groups)


def _contexts(instance: Instance, plan: Plan) -> dict[frozenset[int], float]:
    """Tokens of all that is admitted, by the groups that they may go to; shares are kept to."""
    names = [group.name for group in rollout_groups(plan)]
    allowed = allowed_pairs(plan, instance.demands)
    found: dict[frozenset[int], float] = {}
    for d, demand in enumerate(instance.demands):
        tokens = demand.starts * demand.held_tokens * instance.composition.under_way
        shares = plan.placement.shares.get(demand.task.name, {})
        parts = {frozenset({names.index(name)}): share for name, share in shares.items()}
        anywhere = frozenset(g for task, g in allowed if task == d)
        for groups, share in (parts or {anywhere: 1.0}).items():
            found[groups] = found.get(groups, 0.0) + share * tokens
    return found


def _rooms(instance: Instance, plan: Plan) -> tuple[float, ...]:
    """Tokens that the caches of each group hold; a prefill engine keeps nothing."""
    return tuple(
        0.0 if group.role is Role.PREFILL else kind.costs.kv_capacity_tokens * group.engines
        for kind, group in zip(instance.kinds, rollout_groups(plan), strict=True)
    )
