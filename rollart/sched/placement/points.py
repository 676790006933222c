"""Operating points: one engine of a kind that generates for one task with `batch` requests on it.

Seconds of engine for a started trajectory, and from them by Little's law its rate and concurrency:

    work  = output * iteration(batch) / batch + prefill * p(batch)
    rate  = batch / (batch * work) = 1 / work
    concurrency = batch + rate * environment

where an iteration decodes `batch` requests and p is what a prefilled token adds to it. A request then advances by a
token every `pace = batch * work / output` seconds. Where the contexts of all `concurrency` trajectories outgrow the KV
cache, the prefix cache is taken as lost and every turn prefills its history: the number of requests is a discrete
choice, so that cliff needs no fixed point that oscillates.

A point of a pair decodes on one engine and prefills on another, at `prefill_use` engines of the latter for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rollart.costs.interface import EngineCosts
from rollart.domain.plan import KvReturn, Role
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.kinds import EngineKind

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
REBUILD_CHUNK = 2048
"""Tokens at a time in which KV is taken to be rebuilt after a weight update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An operating point; indices are those of the kinds and demands it was made from."""

    kind: int
    task: int
    batch: int
    rate: float
    """Trajectories that an engine starts and ends in a second."""
    concurrency: float
    pace_s: float
    """Seconds between two tokens of a trajectory."""
    rebuild_s: float
    """Seconds of the engine that a weight update costs: KV of all that it holds."""
    cached: bool
    """Whether the prefix cache holds the histories."""
    prefill_kind: int | None = None
    prefill_use: float = 0.0
    """Prefill engines that one decode engine keeps busy."""
    moved_bytes_per_s: float = 0.0
    """KV that goes from the prefill engines to one decode engine, and back where it returns."""


def points(kinds: list[EngineKind], demands: list[TaskDemand], kv_return: KvReturn) -> Iterator[Point]:
    """All operating points of all kinds and pairs of kinds."""
    for d, demand in enumerate(demands):
        for e, kind in enumerate(kinds):
            partners = [f for f, other in enumerate(kinds) if other.role is Role.PREFILL]
            for batch in BATCHES:
                if kind.role is Role.BOTH:
                    found = [_alone(e, kind, d, demand, batch)]
                elif kind.role is Role.DECODE:
                    found = [_pair(e, kind, f, kinds[f], d, demand, batch, kv_return) for f in partners]
                else:
                    found = []
                yield from (point for point in found if point is not None)


def _alone(e: int, kind: EngineKind, d: int, demand: TaskDemand, batch: int) -> Point | None:
    costs = kind.costs
    resident = batch * demand.context_tokens
    if resident > costs.kv_capacity_tokens or batch > kind.group.max_num_seqs:
        return None
    for kept in _kept(kind):
        cached = kept == 1.0
        prefill = kept * new_tokens(kind, demand) + (1.0 - kept) * demand.history_tokens
        work_s = demand.output_tokens * iteration_s(costs, batch, resident) / batch
        work_s += prefill * added_s(costs, batch, demand, prefill)
        concurrency = batch + demand.environment_s / work_s
        if cached and concurrency * demand.held_tokens > costs.kv_capacity_tokens:
            continue
        # Those in their environment hold a context too, unless it is lost anyway.
        held = resident + (concurrency - batch) * demand.held_tokens if cached else resident
        return Point(
            kind=e,
            task=d,
            batch=batch,
            rate=1.0 / work_s,
            concurrency=concurrency,
            pace_s=batch * work_s / demand.output_tokens,
            rebuild_s=held * rebuild_s_per_token(costs, demand),
            cached=cached,
        )
    return None


def _kept(kind: EngineKind) -> tuple[float, ...]:
    """Parts of the histories that the cache may keep, the best first: all or none, or what a crowded cache keeps."""
    if not kind.group.prefix_caching:
        return (0.0,)
    return (1.0, 0.0) if kind.kept == 1.0 else (kind.kept,)


def _pair(
    e: int,
    kind: EngineKind,
    f: int,
    prefill: EngineKind,
    d: int,
    demand: TaskDemand,
    batch: int,
    kv_return: KvReturn,
) -> Point | None:
    """Decode here, prefill there; the first token of a turn is made there too."""
    costs = kind.costs
    resident = batch * demand.context_tokens
    if resident > costs.kv_capacity_tokens or batch > kind.group.max_num_seqs:
        return None
    work_s = max(1.0, demand.output_tokens - demand.turns) * iteration_s(costs, batch, resident) / batch
    returned = kv_return is KvReturn.TRANSFER
    computed = new_tokens(prefill, demand) + (0.0 if returned else demand.output_tokens)
    prefill_s = computed * added_s(prefill.costs, 0, demand, computed)
    concurrency = batch + (demand.environment_s + prefill_s) / work_s
    if concurrency * demand.held_tokens > costs.kv_capacity_tokens:
        return None
    moved = demand.new_tokens + (demand.output_tokens if returned else 0.0)
    rebuild_s = concurrency * demand.held_tokens * rebuild_s_per_token(prefill.costs, demand)
    return Point(
        kind=e,
        task=d,
        batch=batch,
        rate=1.0 / work_s,
        concurrency=concurrency,
        pace_s=(batch * work_s + prefill_s) / demand.output_tokens,
        rebuild_s=rebuild_s,
        cached=True,
        prefill_kind=f,
        prefill_use=prefill_s / work_s,
        moved_bytes_per_s=moved * costs.kv_bytes_per_token / work_s,
    )


def new_tokens(kind: EngineKind, demand: TaskDemand) -> float:
    """Prefilled tokens of a trajectory where the prefix cache holds its history.

    Members of a group that meet on an engine share their prompt. They spread over as many engines as the pool can
    have of the kind: E (1 - (1 - 1/E)^m) different ones see the prompt of m members.
    """
    engines, members = max(1, kind.spread), demand.started
    seen = engines * (1.0 - (1.0 - 1.0 / engines) ** members) / members
    return demand.new_tokens - demand.prompt_tokens * (1.0 - min(1.0, seen))


def iteration_s(costs: EngineCosts, batch: int, resident_tokens: float) -> float:
    """An iteration that decodes `batch` requests with this context together."""
    piece = costs.decode(batch, int(resident_tokens))
    return piece.base_s + piece.per_token_s * resident_tokens


def rebuild_s_per_token(costs: EngineCosts, demand: TaskDemand) -> float:
    """Seconds to compute a token of a held context again."""
    return costs.mixed_s(0, 0, [(REBUILD_CHUNK, int(demand.held_tokens / 2))]) / REBUILD_CHUNK


def added_s(costs: EngineCosts, batch: int, demand: TaskDemand, prefill_tokens: float) -> float:
    """What a prefilled token adds to an iteration of `batch` requests, in chunks of a mean turn."""
    chunk = min(REBUILD_CHUNK, max(1, round(prefill_tokens / demand.turns)))
    cached = int(demand.context_tokens) if prefill_tokens < demand.history_tokens else int(demand.context_tokens / 2)
    resident = int(batch * demand.context_tokens)
    with_chunk_s = costs.mixed_s(batch, resident, [(chunk, cached)])
    return max(0.0, with_chunk_s - costs.mixed_s(batch, resident, []) if batch else with_chunk_s) / chunk
