"""Draining in lockstep: a batch whose trajectories take their turns together (batch-wise interaction).

In every round all of the batch wait for the slowest environment, then for the longest answer. So a load of one engine
takes, summed over the rounds,

    the longest wait of the batch, whoever has it
    + the prefill of those that are left on the engine
    + the decoding of their answers, the last of which is the longest of the batch

and at its end a reward. The longest of a batch are means over the batches that the sample holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rollart.domain.plan import Role
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.draining import LOADS, Drain
from rollart.sched.placement.kinds import EngineKind
from rollart.sched.placement.points import BATCHES, added_s, iteration_s
from rollart.sched.placement.sample import Array

_LEVELS = 12
"""Quantiles of the answers of a round that a load is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounds:
    """A task, round by round; arrays have the shape (members, rounds)."""

    wait_s: Array
    output: Array
    alive: Array
    """Part of the members that generate in a round."""
    new_tokens: Array
    """Mean over those."""
    levels: Array
    """Quantiles of their answers, shape (rounds, levels), rising."""


def lockstep_drains(kinds: Sequence[EngineKind], demands: Sequence[TaskDemand]) -> Iterator[Drain]:
    """All loads of all kinds; only engines that serve both phases."""
    count = max((len(one) for demand in demands for one in demand.rounds), default=0)
    tasks = [_rounds(demand, count) for demand in demands]
    waits_s = _longest(demands, [task.wait_s for task in tasks]).sum()
    waits_s += max(float(demand.reward_s) for demand in demands)
    longest = _longest(demands, [task.output for task in tasks])
    for d, (demand, task) in enumerate(zip(demands, tasks, strict=True)):
        for e, kind in enumerate(kinds):
            if kind.role is Role.BOTH:
                for load in (load for load in LOADS if load < 2 * demand.starts):
                    generated_s = _generation_s(kind, demand, task, load, longest)
                    yield Drain(kind=e, task=d, load=load, makespan_s=float(waits_s) + generated_s)


def _rounds(demand: TaskDemand, count: int) -> _Rounds:
    members = len(demand.rounds)
    wait_s, output, new = (np.zeros((members, count)) for _ in range(3))
    for member, rounds in enumerate(demand.rounds):
        for turn, one in enumerate(rounds):
            wait_s[member, turn], output[member, turn] = one.wait_s, one.output_tokens
            new[member, turn] = one.new_tokens
    active = (output > 0).sum(axis=0)
    places = (np.arange(_LEVELS) + 0.5) / _LEVELS
    levels = np.zeros((count, _LEVELS))
    for turn in range(int(np.count_nonzero(active))):
        levels[turn] = np.quantile(output[output[:, turn] > 0, turn], places)
    return _Rounds(
        wait_s=wait_s,
        output=output,
        alive=active / members,
        new_tokens=new.sum(axis=0) / np.maximum(active, 1),
        levels=levels,
    )


def _longest(demands: Sequence[TaskDemand], values: Sequence[Array]) -> Array:
    """Of each round the largest value of a batch of all tasks, mean over the batches that fit the smallest sample."""
    batches = max(1, min(len(each) // demand.starts for demand, each in zip(demands, values, strict=True)))
    found = []
    for batch in range(batches):
        own = [
            each[batch * demand.starts : (batch + 1) * demand.starts].max(axis=0)
            for demand, each in zip(demands, values, strict=True)
        ]
        found.append(np.max(own, axis=0))
    mean: Array = np.mean(found, axis=0)
    return mean


def _generation_s(kind: EngineKind, demand: TaskDemand, task: _Rounds, load: int, longest: Array) -> float:
    """Seconds of an engine with a load, over all rounds; the last answer of each round is the batch's longest."""
    costs = kind.costs
    paces_s = [iteration_s(costs, batch, batch * demand.context_tokens) for batch in BATCHES]
    requests = np.maximum(1.0, load * task.alive)
    levels = np.concatenate([np.minimum(task.levels, longest[:, None]), longest[:, None]], axis=1)
    spans = np.diff(levels, axis=1, prepend=0.0)
    active = np.maximum(1.0, requests[:, None] * (1.0 - np.arange(_LEVELS + 1) / _LEVELS))
    most = max(1.0, costs.kv_capacity_tokens / demand.context_tokens)
    overflow = np.maximum(1.0, active / most)
    decoded_s = float((spans * np.interp(np.minimum(active, most), BATCHES, paces_s) * overflow).sum())
    cached = load * demand.held_tokens <= costs.kv_capacity_tokens
    new = task.new_tokens if cached else np.full_like(task.new_tokens, demand.history_tokens / demand.turns)
    prefill = float((requests * new * (task.alive > 0)).sum())
    return decoded_s + prefill * added_s(costs, 0, demand, demand.new_tokens if cached else demand.history_tokens)
