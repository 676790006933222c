"""Candidates: plans for the model's answers, with what the model expects of them."""

from collections.abc import Mapping
from dataclasses import replace

from rollart.domain.plan import Plan
from rollart.domain.planning import Objective
from rollart.sched.placement.crowding import crowded
from rollart.sched.placement.groups import fewest_groups
from rollart.sched.placement.instance import Instance, instance
from rollart.sched.placement.kinds import engine_kind
from rollart.sched.placement.layout import plan_of
from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.predict import Expectation, expect, rollout_groups
from rollart.sched.placement.rent import devices_taken, price_per_hour
from rollart.sched.placement.report import Candidate, PoolUse, Prediction

_SLACK = (1.25, 1.1, 1.04, 1.01, 1.0)
"""Batches in a step that groups are asked to feed, if the answer's engines can: spare rate against bad luck."""
_LEEWAY = (1.002, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2)
"""How much longer a step may become for the sake of whole groups that share their engines."""
_GROUPING_S = 5.0
"""Whatever the time limit: a plan is always made of what was found."""
_S_PER_HOUR = 3600.0
_FULL = 0.97
"""Part of the time from which on engines count as full."""


def candidate_for(answer: Answer, objective: Objective, oracle: Oracle) -> Candidate | None:
    """A plan that keeps the answer's step, or nearly; None where no groups were found in time."""
    site, step_s = answer.site, answer.step_s
    for leeway in _LEEWAY:
        longer_s = step_s * leeway
        window_s = site.window_s(answer.trainer, longer_s)
        room = answer.room
        if objective is not Objective.STEP_TIME:
            fixed = site.fixed_price(answer.trainer)
            room = replace(room, price_per_hour=min(room.price_per_hour, (answer.price_per_hour - fixed) * 1.0001))
        # A cheapest plan has no engines to spare.
        for batches in _SLACK if objective is Objective.STEP_TIME else (1.0,):
            if batches > answer.rollout.value * 0.999 and batches > 1.0 and objective is Objective.STEP_TIME:
                continue
            groups = fewest_groups(site.instance, room, longer_s, window_s, batches, max(_GROUPING_S, oracle.left_s))
            if groups:
                return candidate_of(site.instance, plan_of(site.instance, answer.trainer, groups), objective)
    return None


def candidate_of(base: Instance, plan: Plan, objective: Objective) -> Candidate | None:
    """What the model expects of a plan; `base` has the demands under the plan's policy."""
    own = _own_instance(base, plan)
    found = None if own is None else _predicted(own, plan)
    if own is not None and found is not None and found.bottleneck == "rollout":
        under_pressure = crowded(own, plan)
        # The programs take long: not twice where nothing has changed.
        found = found if under_pressure is own else _predicted(under_pressure, plan)
    return None if found is None else Candidate(plan=plan, predicted=found, value=value_of(found, objective, base))


def _predicted(own: Instance, plan: Plan) -> Prediction | None:
    """The prediction; None where the plan cannot go on at all."""
    expected = expect(own, plan)
    return None if expected is None else _prediction(own, plan, expected)


def _own_instance(base: Instance, plan: Plan) -> Instance | None:
    """The data with the plan's rollout groups as its kinds; None where an engine does not fit."""
    kinds = [engine_kind(base.job, group) for group in rollout_groups(plan)]
    if any(kind is None for kind in kinds):
        return None
    return instance(
        replace(base.job, plan=plan),
        replace(base.rules, engines=(), tasks=()),
        plan.policy,
        base.penalty,
        [kind for kind in kinds if kind is not None],
        list(base.demands),
    )


def value_of(predicted: Prediction, objective: Objective, base: Instance) -> float:
    """The objective, penalty included."""
    if objective is Objective.STEP_TIME:
        return predicted.step_s * base.penalty
    cost = predicted.cost_per_step * base.penalty
    return cost if objective is Objective.COST else base.job.training.batch_size / cost


def functions_cost(base: Instance) -> float:
    """Price of a step's rewards on functions."""
    price = base.job.cluster.serverless.price_per_second
    return price * sum(
        demand.starts * demand.reward_s for demand in base.demands if demand.task.reward.kind.value == "serverless"
    )


def _prediction(own: Instance, plan: Plan, expected: Expectation) -> Prediction:
    job, placement = own.job, plan.placement
    taken = {name: devices_taken(placement, name) for name in job.cluster.pools}
    hourly = price_per_hour(job.cluster, taken)
    return Prediction(
        step_s=expected.step_s,
        cost_per_step=hourly * expected.step_s / _S_PER_HOUR + functions_cost(own),
        rollout_s=expected.rollout_s,
        training_s=expected.training_s,
        update_s=expected.fetch_s + expected.load_s,
        bottleneck=_bottleneck(own, expected),
        pools={name: _pool_use(own, plan, expected, name, taken[name]) for name in job.cluster.pools},
        shares=_shares(own, plan, expected),
    )


def _bottleneck(own: Instance, expected: Expectation) -> str:
    """The stage that the step waits for."""
    composition = own.composition
    alone_s = composition.step_s(0.0, expected.training_s, expected.fetch_s, expected.load_s)
    if composition.sums:
        stages = {
            "rollout": expected.rollout_s,
            "training": expected.training_s,
            "weights": expected.fetch_s + expected.load_s,
        }
        return max(stages, key=lambda stage: stages[stage])
    if expected.step_s > alone_s * 1.005:
        return "rollout"
    return "training" if expected.training_s >= alone_s / 2 else "weights"


def _pool_use(own: Instance, plan: Plan, expected: Expectation, pool: str, taken: int) -> PoolUse:
    trainer = plan.placement.trainer
    training = trainer.devices if trainer.pool == pool else 0
    loads = [
        (kind, group, load)
        for kind, group, load in zip(own.kinds, rollout_groups(plan), expected.balance.loads, strict=True)
        if kind.pool == pool
    ]
    devices = sum(group.devices for _, group, _ in loads)
    # Of the time that a batch in a step takes: engines that could feed more are busy for a part of it.
    busy = sum(group.devices * load.busy for _, group, load in loads) / max(1, devices) / expected.balance.batches
    return PoolUse(
        training_devices=training,
        rollout_devices=devices,
        idle_devices=own.job.cluster.pools[pool].count - taken,
        busy=min(1.0, busy),
        bottleneck=_reason(training, devices, busy, expected),
    )


def _reason(training: int, rollout: int, busy: float, expected: Expectation) -> str:
    """In words, what the pool does and what keeps it from doing more."""
    if not training and not rollout:
        return "not used: the step waits for something else"
    words = []
    if training:
        words.append(f"trains {expected.training_s:.1f} of {expected.step_s:.1f} s")
    if rollout:
        full = "its engines are full" if busy > _FULL else "its engines have time to spare"
        words.append(f"rolls out, {full}")
    return "; ".join(words)


def _shares(own: Instance, plan: Plan, expected: Expectation) -> Mapping[str, Mapping[str, float]]:
    names = [group.name for group in rollout_groups(plan)]
    shares = {}
    for d, demand in enumerate(own.demands):
        served = {
            name: load.served[d] for name, load in zip(names, expected.balance.loads, strict=True) if d in load.served
        }
        total = sum(served.values())
        shares[demand.task.name] = {name: amount / total for name, amount in served.items() if amount > 0}
    return shares
