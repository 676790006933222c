"""Draining points: an engine that gets its part of a batch at once and works until the last of it is done.

For policies with a barrier. `load` trajectories start together; as they end, the others are generated faster. The
drain is followed from one death to the next (in steps of a few deaths), with trajectories at even quantiles of the
sample and the expected longest group of the whole batch among them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollart.domain.plan import Role
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.kinds import EngineKind
from rollart.sched.placement.points import added_s, iteration_s, new_tokens
from rollart.sched.placement.sample import Array

LOADS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
_DEATHS = 12
"""One in so many trajectories dies in a step of the drain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """An engine of a kind with a load of one task."""

    kind: int
    task: int
    load: int
    makespan_s: float


def drains(kinds: list[EngineKind], demands: list[TaskDemand]) -> Iterator[Drain]:
    """All loads of all kinds; only engines that serve both phases."""
    for d, demand in enumerate(demands):
        loads = [load for load in LOADS if load < 2 * demand.starts]
        for e, kind in enumerate(kinds):
            if kind.role is Role.BOTH:
                for load in loads:
                    yield Drain(kind=e, task=d, load=load, makespan_s=_makespan_s(kind, demand, load))


def _makespan_s(kind: EngineKind, demand: TaskDemand, load: int) -> float:
    costs = kind.costs
    output, waits_s = _members(demand, load)
    most = max(1.0, costs.kv_capacity_tokens / demand.context_tokens)
    cached = load * demand.held_tokens <= costs.kv_capacity_tokens
    prefill = (new_tokens(kind, demand) if cached else demand.history_tokens) / demand.output_tokens
    left = np.ones(load)
    now_s, on_engine = 0.0, float(load)
    while left.size:
        batch = max(1, round(min(on_engine, most)))
        pace_s = iteration_s(costs, batch, batch * demand.context_tokens)
        pace_s += batch * prefill * added_s(costs, batch, demand, prefill * demand.output_tokens)
        pace_s *= max(1.0, on_engine / most)
        generating_s = output * pace_s
        whole_s = generating_s + waits_s
        on_engine = float((generating_s / whole_s).sum())
        ends_s = left * whole_s
        rank = min(left.size - 1, left.size // _DEATHS)
        passed_s = float(np.partition(ends_s, rank)[rank])
        now_s += passed_s
        left = left - passed_s / whole_s
        alive = left > 1e-9
        left, output, waits_s = left[alive], output[alive], waits_s[alive]
    return now_s


def _members(demand: TaskDemand, load: int) -> tuple[Array, Array]:
    """Output tokens and waits of a load: even quantiles of the sample, the last one the longest of a batch."""
    order = np.argsort(demand.member_output_tokens, kind="stable")
    at = ((np.arange(load) + 0.5) / load * len(order)).astype(int)
    output, waits_s = demand.member_output_tokens[order][at], demand.member_waits_s[order][at]
    longest = np.argsort(demand.group_output_tokens, kind="stable")
    last = longest[min(len(longest) - 1, round(len(longest) * demand.groups / (demand.groups + 1)))]
    output[-1], waits_s[-1] = demand.group_output_tokens[last], demand.group_waits_s[last]
    return np.maximum(output, 1.0), waits_s
