"""Engines, links and weight sites of a job, with their costs."""

from collections.abc import Callable
from dataclasses import dataclass

from rollart.costs.interface import EngineCosts
from rollart.costs.job_costs import engine_costs
from rollart.costs.weights import bulk_link
from rollart.domain.errors import CapacityError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup
from rollart.modelled.clock import Clock
from rollart.modelled.network import SharedLink
from rollart.modelled.weight_store import EngineSite
from rollart.serving.config import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """What the engines of one group have in common."""

    group: EngineGroup
    costs: EngineCosts
    config: EngineConfig


def engine_kinds(job: Job) -> list[EngineKind]:
    """One kind per engine group; CapacityError when a trajectory of the context limit has no room."""
    kinds = []
    for group in job.plan.placement.engine_groups:
        costs = engine_costs(job, group)
        blocks = int(costs.kv_capacity_tokens // group.block_size)
        if blocks * group.block_size < job.training.context_limit + group.block_size:
            raise CapacityError(
                f"engine group {group.name!r}: KV cache for {costs.kv_capacity_tokens} tokens beside the weights, but "
                f"training.context_limit is {job.training.context_limit}; use a larger tensor_parallel or a lower limit"
            )
        config = EngineConfig(
            max_num_seqs=group.max_num_seqs,
            max_num_batched_tokens=group.max_num_batched_tokens,
            kv_blocks=blocks,
            block_size=group.block_size,
            prefix_caching=group.prefix_caching,
            scheduling_lag=group.scheduling_lag,
        )
        kinds.append(EngineKind(group=group, costs=costs, config=config))
    return kinds


def engine_sites(job: Job, kinds: list[EngineKind]) -> list[EngineSite]:
    """Where each engine's weights go; the store lies in the trainer's pool, and all engines pull at once.

    Table 4 of the paper: all pulls together take as long as one bare transfer of Table 3, so pulls do not share.
    """
    trainer = job.plan.placement.trainer.pool
    sites = []
    for kind in kinds:
        group = kind.group
        pool = job.cluster.pools[group.pool]
        sites += [
            EngineSite(
                device=pool.device,
                devices=group.tensor_parallel,
                weight_bytes=kind.costs.weight_bytes,
                pull_link=bulk_link(job.cluster.link(trainer, group.pool)),
                time_shared=group.time_shared,
            )
        ] * group.engines
    return sites


def link_table(
    job: Job, pools: list[str], clock: Clock
) -> tuple[Callable[[int, int], SharedLink], dict[str, SharedLink]]:
    """A look-up of the link between two engines (by index), and all links made so far by name."""
    links: dict[str, SharedLink] = {}

    def between(a: int, b: int) -> SharedLink:
        first, second = sorted((pools[a], pools[b]))
        name = f"{first}-{second}"
        if name not in links:
            links[name] = SharedLink(job.cluster.link(first, second), clock)
        return links[name]

    return between, links
