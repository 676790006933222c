"""Worlds that differ from the one that was planned for in one thing: what would it change?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollart.domain.cluster import Cluster, Link
from rollart.domain.job import Job
from rollart.domain.plan import PolicySpec
from rollart.sched.parts import build
from rollart.workload.reshaped import AS_IT_IS, Reshape

TAIL_SCALE = 2.0
LINK_SCALE = 0.5
OUTPUT_SCALES = (0.5, 0.7, 1.4, 2.0)
"""Drifts of the output lengths that are looked at, for when to plan again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A job and a workload that differ from those that were planned for."""

    name: str
    job: Job
    reshape: Reshape = AS_IT_IS
    same_for_kept: bool = False
    """The plan that was made for the old world does the same in the new one."""


def variations(job: Job) -> Iterator[Variation]:
    """One more node of each pool, heavier tails, slower links, more staleness."""
    for name, pool in job.cluster.pools.items():
        more = {**job.cluster.pools, name: replace(pool, count=pool.count + pool.devices_per_node)}
        cluster = replace(job.cluster, pools=more)
        devices = f"{pool.devices_per_node} device" + "s" * (pool.devices_per_node > 1)
        yield Variation(
            name=f"one more node of {name} ({devices})", job=replace(job, cluster=cluster), same_for_kept=True
        )
    yield Variation(name="tails twice as heavy", job=job, reshape=Reshape(tail_scale=TAIL_SCALE))
    yield Variation(name="links between pools half as fast", job=replace(job, cluster=_slower_links(job.cluster)))
    if build(job.plan.policy.parts).admission.lookahead:
        policy = with_more_staleness(job.plan.policy)
        yield Variation(name="staleness bound + 1", job=replace(job, plan=replace(job.plan, policy=policy)))


def drifts(job: Job) -> Iterator[tuple[float, Variation]]:
    """Shorter and longer outputs, each with its scale."""
    for scale in OUTPUT_SCALES:
        yield scale, Variation(name=f"outputs x {scale:g}", job=job, reshape=Reshape(output_scale=scale))


def with_more_staleness(policy: PolicySpec) -> PolicySpec:
    """The policy with one more version of staleness, and admission that lets it happen."""
    parts = {slot: dict(part) for slot, part in policy.parts.items()}
    parts["admission"]["lookahead"] = parts["admission"].get("lookahead", 0) + 1
    if "bound" in parts["staleness"]:
        parts["staleness"]["bound"] += 1
    return replace(policy, parts=parts)


def _slower_links(cluster: Cluster) -> Cluster:
    def slower(link: Link) -> Link:
        return replace(link, bandwidth_bytes_per_s=LINK_SCALE * link.bandwidth_bytes_per_s)

    links = {pair: slower(link) for pair, link in cluster.links.items()}
    return replace(cluster, links=links, default_link=slower(cluster.default_link))
