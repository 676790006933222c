"""Columns of the model: an engine kind at a concurrency, serving one task, with its rate and latency.

The rate comes from a closed loop of c trajectories that alternate between the engine and their environment. With B of
them on the engine, generating one trajectory takes

    G(B) = output * (a(B) + b * B * context) + prefill * p(B)

(a, b: the decode piece of the costs; p: seconds per prefilled token beside B decodes, which B requests share), and
B = c * G / (G + environment). The largest fixed point is found by iteration from B = c, downwards and monotone. Rate
= c / (G + environment) by Little's law. Where c contexts outgrow the KV cache, the prefix cache is taken as lost and
every turn prefills its history: concurrency is a discrete choice, so that cliff needs no iteration of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rollart.costs.interface import EngineCosts
from rollart.costs.job_costs import engine_costs
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup
from rollart.sched.placement.demand import TaskDemand

CONCURRENCY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
TENSOR_PARALLEL = (1, 2, 4, 8)
_CHUNK_TOKENS = 512
_ITERATIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """Engines of one pool with one tensor parallelism."""

    pool: str
    tensor_parallel: int
    costs: EngineCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One engine of a kind that serves `task` with `concurrency` trajectories."""

    kind: int
    task: int
    concurrency: int
    rate: float
    """Trajectories per second of one engine."""
    longest_s: float
    """Latency of the expected longest trajectory of a batch."""


def engine_kinds(job: Job) -> list[EngineKind]:
    """Every kind that fits: within a node, weights and a trajectory of the context limit in memory."""
    kinds = []
    for pool in job.cluster.pools.values():
        for tensor_parallel in TENSOR_PARALLEL:
            if tensor_parallel > min(pool.devices_per_node, pool.count):
                continue
            group = EngineGroup(name=pool.name, pool=pool.name, engines=1, tensor_parallel=tensor_parallel)
            try:
                costs = engine_costs(job, group)
            except (CapacityError, InputError):
                continue
            if costs.kv_capacity_tokens >= job.training.context_limit + group.block_size:
                kinds.append(EngineKind(pool=pool.name, tensor_parallel=tensor_parallel, costs=costs))
    return kinds


def columns(kinds: list[EngineKind], demands: list[TaskDemand]) -> Iterator[Column]:
    """All operating points."""
    for kind_index, kind in enumerate(kinds):
        for task_index, demand in enumerate(demands):
            for concurrency in CONCURRENCY:
                generation_s = _generation_s(kind.costs, demand, concurrency)
                longest_tokens, longest_environment_s = demand.longest
                stretch = longest_tokens / demand.output_tokens
                yield Column(
                    kind=kind_index,
                    task=task_index,
                    concurrency=concurrency,
                    rate=concurrency / (generation_s + demand.environment_s),
                    longest_s=generation_s * stretch + longest_environment_s,
                )


def _generation_s(costs: EngineCosts, demand: TaskDemand, concurrency: int) -> float:
    """Seconds on the engine of a mean trajectory among `concurrency` of them."""
    fits = concurrency * demand.peak_tokens <= costs.kv_capacity_tokens
    prefill = demand.new_tokens if fits else demand.history_tokens
    prefill_s = costs.mixed_s(0, 0, [(_CHUNK_TOKENS, int(demand.context_tokens))]) / _CHUNK_TOKENS
    on_engine = float(concurrency)
    generation_s = 0.0
    for _ in range(_ITERATIONS):
        batch = max(1, round(on_engine))
        resident = batch * demand.context_tokens
        piece = costs.decode(batch, int(resident))
        iteration_s = piece.base_s + piece.per_token_s * resident
        generation_s = demand.output_tokens * iteration_s + prefill * prefill_s * max(1.0, on_engine)
        following = concurrency * generation_s / (generation_s + demand.environment_s)
        if abs(following - on_engine) < 1e-3:
            break
        on_engine = following
    return generation_s
