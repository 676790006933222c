"""What a plan takes of a cluster, and what that costs by the hour."""

from dataclasses import replace

from rollart.domain.cluster import Cluster
from rollart.domain.job import Job
from rollart.domain.plan import Placement, Plan


def devices_taken(placement: Placement, pool: str) -> int:
    """Devices of a pool that train or serve; time-shared engines live on the trainer's."""
    engines = sum(group.devices for group in placement.engine_groups if group.pool == pool and not group.time_shared)
    return engines + (placement.trainer.devices if placement.trainer.pool == pool else 0)


def rented(job: Job, plan: Plan) -> Job:
    """The job under a plan, on a cluster that has the devices that the plan takes and no others.

    A driver charges for whole pools; so it charges for what the plan takes.
    """
    pools = {
        name: replace(pool, count=taken)
        for name, pool in job.cluster.pools.items()
        if (taken := devices_taken(plan.placement, name))
    }
    return replace(job, plan=plan, cluster=replace(job.cluster, pools=pools))


def price_per_hour(cluster: Cluster, taken: dict[str, int]) -> float:
    """Price of an hour of devices (by pool) and of all environment cores."""
    devices = sum(count * cluster.pools[name].price_per_hour for name, count in taken.items())
    return devices + cluster.environments.cores * cluster.environments.price_per_core_hour
