"""What the model expects of a given plan: the shortest step that its trainer and its engine groups can keep."""

from collections.abc import Callable
from dataclasses import dataclass

from rollart.costs.job_costs import fetch_s
from rollart.domain.plan import EngineGroup, Plan, Role
from rollart.sched.placement.balance import Balance, balance
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.trainers import batch_lengths, training_s

_RELAXED_PRECISION = 5e-4
"""Relative width at which the search for the shortest step ends."""
_PRECISION = 1.5e-3
"""The same where programs are whole, and slow."""
_LONGEST_S = 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A plan's step in the model."""

    step_s: float
    rollout_s: float
    """Of a batch: the window of the step over the batches that are fed in it."""
    training_s: float
    fetch_s: float
    load_s: float
    balance: Balance


def expect(instance: Instance, plan: Plan) -> Expectation | None:
    """The expectation; `instance` has the plan's rollout groups as its kinds. None where it cannot go on at all."""
    placement, composition = plan.placement, instance.composition
    trained_s = training_s(instance.job, placement.trainer, batch_lengths(list(instance.demands)))
    if trained_s is None:
        return None
    groups = rollout_groups(plan)
    weight_bytes = instance.kinds[0].costs.weight_bytes
    fetched_s = fetch_s(instance.job, placement.trainer, [group.pool for group in groups], weight_bytes)
    loaded_s = max(kind.load_s for kind in instance.kinds)
    engines = tuple(group.engines for group in groups)
    allowed = allowed_pairs(plan, instance.demands)

    def at(step_s: float, *, integer: bool) -> Balance | None:
        window_s = composition.window_s(step_s, trained_s, fetched_s, loaded_s)
        return balance(instance, engines, allowed, step_s, window_s, integer=integer) if window_s > 0 else None

    # The relaxation finds nearly the place, so that few integer programs are solved.
    least_s = composition.step_s(0.0, trained_s, fetched_s, loaded_s)
    near = _shortest(lambda step_s: at(step_s, integer=False), least_s, 1.0, _RELAXED_PRECISION)
    found = near and _shortest(lambda step_s: at(step_s, integer=True), near[0], _PRECISION, _PRECISION)
    if found is None:
        return None
    step_s, balanced = found
    window_s = composition.window_s(step_s, trained_s, fetched_s, loaded_s)
    return Expectation(
        step_s=step_s,
        rollout_s=window_s / balanced.batches,
        training_s=trained_s,
        fetch_s=fetched_s,
        load_s=loaded_s,
        balance=balanced,
    )


def rollout_groups(plan: Plan) -> list[EngineGroup]:
    """Groups that generate."""
    return [group for group in plan.placement.engine_groups if group.role is not Role.JUDGE]


def _shortest(
    at: Callable[[float], Balance | None], least_s: float, more: float, precision: float
) -> tuple[float, Balance] | None:
    """The shortest step at which a batch is fed, from `least_s` on; `more` is the first stride, which doubles."""
    low_s, high_s = least_s, least_s
    found = at(high_s)
    while found is None or found.batches < 1.0 - 1e-9:
        low_s, high_s, more = high_s, high_s * (1 + more), more * 2
        if high_s > _LONGEST_S:
            return None
        found = at(high_s)
    while high_s > low_s * (1 + 1.01 * precision):
        middle_s = (low_s * high_s) ** 0.5
        between = at(middle_s)
        if between is not None and between.batches >= 1.0 - 1e-9:
            high_s, found = middle_s, between
        else:
            low_s = middle_s
    return high_s, found


def allowed_pairs(plan: Plan, demands: tuple[TaskDemand, ...]) -> frozenset[tuple[int, int]]:
    """Which task may go to which rollout group: where the affinity says, prefill engines aside."""
    affinity, groups = plan.placement.affinity, rollout_groups(plan)
    pairs = set()
    for d, demand in enumerate(demands):
        names = affinity.get(demand.task.name, affinity.get("default"))
        for g, group in enumerate(groups):
            if group.role is not Role.PREFILL and (names is None or group.name in names):
                pairs.add((d, g))
    return frozenset(pairs)
