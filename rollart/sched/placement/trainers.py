"""Trainer options: devices of a pool, cut in the fastest way that fits, with the duration of a step."""

import itertools
from dataclasses import dataclass, replace

from rollart.costs.job_costs import training_costs
from rollart.domain.cluster import Pool
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.job import Job
from rollart.domain.plan import TrainerPlacement
from rollart.sched.placement.demand import TaskDemand

_SPLITS = (1, 2, 4, 8)
_EXPERT_SPLITS = (1, 8, 16, 32)
_COUNTS = 32
"""Most numbers of devices that are tried in a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerOption:
    """A placement of the trainer and what a step takes on it."""

    placement: TrainerPlacement
    step_s: float


def trainer_options(job: Job, demands: list[TaskDemand]) -> list[TrainerOption]:
    """For each pool and number of devices the fastest cut that fits."""
    lengths = _batch(demands)
    options = []
    for pool in job.cluster.pools.values():
        cuts: list[TrainerPlacement] = []
        for devices in _device_counts(pool):
            # The first number that fits ranks all cuts; larger ones differ by replicas alone.
            cuts = cuts or _ranked_cuts(job, pool, devices, lengths)
            found = _fastest(job, cuts, devices, lengths)
            if found is not None:
                options.append(found)
    return options


def _batch(demands: list[TaskDemand]) -> list[int]:
    """Lengths of a batch, out of the sample."""
    return [demand.lengths[index % len(demand.lengths)] for demand in demands for index in range(demand.trajectories)]


def _device_counts(pool: Pool) -> list[int]:
    """Whole nodes, or single devices of a pool that is smaller than two nodes; thinned where there are many."""
    unit = pool.devices_per_node if pool.count >= 2 * pool.devices_per_node else 1
    counts = list(range(unit, pool.count + 1, unit))
    stride = -(-len(counts) // _COUNTS)
    return counts[stride - 1 :: stride]


def _ranked_cuts(job: Job, pool: Pool, devices: int, lengths: list[int]) -> list[TrainerPlacement]:
    experts = _EXPERT_SPLITS if job.model.experts is not None else (1,)
    timed: list[tuple[float, int, TrainerPlacement]] = []
    for tp, pp, cp, ep in itertools.product(_SPLITS, _SPLITS, _SPLITS[:2], experts):
        if tp > pool.devices_per_node:
            continue
        cut = TrainerPlacement(
            pool=pool.name,
            devices=devices,
            tensor_parallel=tp,
            pipeline_parallel=pp,
            context_parallel=cp,
            expert_parallel=ep,
            publishers=job.plan.placement.trainer.publishers,
        )
        step_s = _step_s(job, cut, lengths)
        if step_s is not None:
            timed.append((step_s, len(timed), cut))
    return [cut for _, _, cut in sorted(timed, key=lambda one: one[:2])]


def _fastest(job: Job, cuts: list[TrainerPlacement], devices: int, lengths: list[int]) -> TrainerOption | None:
    for cut in cuts:
        placed = replace(cut, devices=devices)
        step_s = _step_s(job, placed, lengths)
        if step_s is not None:
            return TrainerOption(placement=placed, step_s=step_s)
    return None


def _step_s(job: Job, placement: TrainerPlacement, lengths: list[int]) -> float | None:
    """Duration of a step, or None where the cut does not divide or fit."""
    cut = placement.tensor_parallel * placement.pipeline_parallel * placement.context_parallel
    if placement.devices % cut or len(lengths) < placement.data_parallel:
        return None
    try:
        return training_costs(job, placement).step(lengths).total_s
    except (CapacityError, InputError):
        return None
