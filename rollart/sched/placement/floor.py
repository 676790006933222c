"""The floor: what no simulation of any plan beats, from optimistic coefficients.

Nothing waits, nothing fails, nothing is recomputed: environments answer at once, histories and prompts are always in
the cache, stale and cut-off work is free, engines work at any mix of batches and may be fractions. What stays is the
work of the shortest members that a batch needs, the devices, the quota of the policy, training and the weights.

Two corrections are for finite runs. A run of k counted steps may begin with batches that were rolled out before: only
k - credit of them are asked for in k steps. And its sample may be lighter than the mean: every demand is lowered by
three standard errors of a mean over so many groups.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rollart.domain.planning import Objective
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.oracle import Oracle
from rollart.sched.placement.points import points
from rollart.sched.placement.problem import ProblemData
from rollart.sched.placement.sample import Array, TaskSample
from rollart.sched.placement.shortest import relaxed_bound
from rollart.sched.placement.sites import Site, sites
from rollart.sched.placement.trainers import TrainerOption, batch_lengths, training_s, without_slower

COUNTED_STEPS = 4
"""Counted steps of the shortest simulation that the floor is promised for."""
_ERRORS = 3.0
_RATIO = 1.06
"""Between two durations of a step at which the least price is asked for."""
_LONGEST = 40.0
"""The cheapest step is looked for among those up to so many times the shortest."""
_S_PER_HOUR = 3600.0


def floor_of(data: ProblemData, objective: Objective, clock: Callable[[], float]) -> float:
    """A value of the objective that no simulated plan beats."""
    oracle = Oracle(clock, math.inf)
    places = [place for one in data.instances() for place in _optimistic_sites(data, one)]
    step_s = relaxed_bound(places, oracle)
    if step_s is None:
        return math.inf if objective.maximised else 0.0
    if objective is Objective.STEP_TIME:
        return step_s
    cost = _least_cost(places, oracle, step_s)
    return data.problem.job.training.batch_size / cost if objective.maximised else cost


def _least_cost(places: list[Site], oracle: Oracle, step_s: float) -> float:
    """The least price of a step: between two durations it costs no less than the shorter one at the longer's price."""
    least = math.inf
    low_s = step_s
    # However long the step is, this much is paid for its hours.
    patient = [oracle.cheapest(place, step_s * _LONGEST, integer=False) for place in places]
    hourly_at_least = min((one.least_price_per_hour for one in patient if one is not None), default=0.0)
    while low_s < step_s * _LONGEST and low_s * hourly_at_least / _S_PER_HOUR < least:
        high_s = low_s * _RATIO
        found = [one for place in places if (one := oracle.cheapest(place, high_s, integer=False)) is not None]
        if found:
            hourly = min(one.least_price_per_hour for one in found)
            least = min(least, low_s * hourly / _S_PER_HOUR)
        low_s = high_s
    return least


def _optimistic_sites(data: ProblemData, base: Instance) -> list[Site]:
    """Sites of a policy whose coefficients nothing beats."""
    samples = data.samples(base.policy)
    demands = [_lightest(demand, sample) for demand, sample in zip(base.demands, samples, strict=True)]
    composition = replace(base.composition, barrier=False, late=False, oldest=None)
    kinds = tuple(replace(kind, spread=1) for kind in base.kinds)
    share = _asked_share(base.composition)
    made = [
        replace(point, rate=point.rate / share, rebuild_s=0.0)
        for point in points(list(kinds), demands, base.job.plan.placement.kv_return)
    ]
    rules = replace(base.rules, limits=replace(base.rules.limits, step_s=None, cost_per_step=None))
    found = Instance(
        job=base.job,
        rules=rules,
        policy=base.policy,
        composition=replace(composition, ahead=max(composition.ahead, 1.0)),
        penalty=base.penalty,
        kinds=kinds,
        demands=tuple(demands),
        points=tuple(made),
        drains=(),
    )
    return sites(found, _trainers(data, base, demands))


def _trainers(data: ProblemData, base: Instance, demands: list[TaskDemand]) -> list[TrainerOption]:
    """The trainers of the model, in the same cuts, on the lightest batch."""
    lengths = batch_lengths(demands)
    timed = []
    for option in data.trainers(base.policy):
        step_s = training_s(base.job, option.placement, lengths)
        timed.append(replace(option, step_s=option.step_s if step_s is None else min(option.step_s, step_s)))
    return without_slower(timed)


def _asked_share(composition: Composition) -> float:
    """Part of a run's batches that it must roll out itself; small, not zero, where it may begin with all of them."""
    credit = 0.0 if composition.sums else composition.under_way
    return max(0.05, 1.0 - credit / COUNTED_STEPS)


def _lightest(demand: TaskDemand, sample: TaskSample) -> TaskDemand:
    """The demand of the shortest members that complete a group, less three standard errors; nothing waits."""
    size, started = sample.task.group_size, demand.started
    runs = demand.groups * COUNTED_STEPS

    def least(values: Array) -> float:
        """Mean over the started members, those beyond the size for free."""
        whole = np.sort(values[:, :started], axis=1)[:, :size].sum(axis=1) / started
        return float(max(whole.mean() * 0.05, whole.mean() - _ERRORS * whole.std() / math.sqrt(runs)))

    lengths = np.sort(sample.length[:, :started], axis=1)[:, :size]
    lighter = least(sample.length) / max(1.0, float(lengths.sum(axis=1).mean() / started))
    output = least(sample.output_tokens)
    shortest = np.sort(sample.output_tokens[:, :started], axis=1)[:, :size]
    return replace(
        demand,
        output_tokens=output,
        new_tokens=least(sample.new_tokens),
        prompt_tokens=min(demand.prompt_tokens, least(sample.new_tokens)),
        history_tokens=least(sample.history_tokens),
        context_tokens=least(sample.read_tokens) / float(shortest.sum(axis=1).mean() / started),
        held_tokens=1.0,
        environment_s=0.0,
        busy_s=0.0,
        reward_s=0.0,
        group_waits_s=np.zeros_like(demand.group_waits_s),
        group_output_tokens=np.zeros_like(demand.group_output_tokens),
        lengths=np.maximum(1.0, lengths.ravel() * lighter),
    )
