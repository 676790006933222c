"""Trainer options: devices of a pool, cut in the fastest way that fits, with the duration of a step."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from rollart.costs.job_costs import training_costs
from rollart.domain.cluster import Pool
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.job import Job
from rollart.domain.plan import TrainerPlacement
from rollart.domain.planning import TrainerRule
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


def trainer_options(job: Job, demands: list[TaskDemand], rule: TrainerRule) -> list[TrainerOption]:
    """For each pool and number of devices the fastest cut that fits."""
    lengths = batch_lengths(demands)
    options = []
    for pool in job.cluster.pools.values():
        if rule.pools is None or pool.name in rule.pools:
            options += _options(job, pool, rule, lengths)
    return options


def batch_lengths(demands: list[TaskDemand]) -> list[int]:
    """Lengths of a batch: those of the sample, at even quantiles."""
    return [
        int(length)
        for demand in demands
        for length in np.quantile(demand.lengths, (np.arange(demand.trajectories) + 0.5) / demand.trajectories)
    ]


def training_s(job: Job, placement: TrainerPlacement, lengths: list[int]) -> float | None:
    """Duration of a step, or None where the cut does not divide or fit."""
    cut = placement.tensor_parallel * placement.pipeline_parallel * placement.context_parallel
    if placement.devices % cut or len(lengths) < placement.data_parallel:
        return None
    try:
        return training_costs(job, placement).step(lengths).total_s
    except (CapacityError, InputError):
        return None


def _options(job: Job, pool: Pool, rule: TrainerRule, lengths: list[int]) -> list[TrainerOption]:
    options = []
    cuts: list[TrainerPlacement] = []
    for devices in _device_counts(pool, rule):
        # The first number that fits ranks all cuts; larger ones differ by replicas alone.
        cuts = cuts or _ranked_cuts(job, pool, rule, devices, lengths)
        found = _fastest(job, cuts, devices, lengths)
        if found is not None:
            options.append(found)
    return options


def without_slower(options: list[TrainerOption]) -> list[TrainerOption]:
    """Options without those that a smaller trainer on the same pool is as fast as."""
    kept: list[TrainerOption] = []
    for option in options:
        before = kept[-1] if kept and kept[-1].placement.pool == option.placement.pool else None
        if before is None or option.step_s < before.step_s:
            kept.append(option)
    return kept


def _device_counts(pool: Pool, rule: TrainerRule) -> list[int]:
    """Whole nodes, or single devices of a pool that is smaller than two nodes; thinned where there are many."""
    unit = pool.devices_per_node if pool.count >= 2 * pool.devices_per_node else 1
    counts = list(range(unit, pool.count + 1, unit))
    stride = -(-len(counts) // _COUNTS)
    counts = counts[stride - 1 :: stride]
    if rule.devices is None:
        return counts
    least, most = int(rule.devices.least), min(int(rule.devices.most), pool.count)
    return sorted(
        {count for count in counts if count in rule.devices} | ({least, most} if 0 < least <= most else set())
    )


def _ranked_cuts(job: Job, pool: Pool, rule: TrainerRule, devices: int, lengths: list[int]) -> list[TrainerPlacement]:
    experts = _EXPERT_SPLITS if job.model.experts is not None else (1,)
    choices = (
        _pinned(rule.tensor_parallel, _SPLITS),
        _pinned(rule.pipeline_parallel, _SPLITS),
        _pinned(rule.context_parallel, _SPLITS[:2]),
        _pinned(rule.expert_parallel, experts),
    )
    timed: list[tuple[float, int, TrainerPlacement]] = []
    for tp, pp, cp, ep in itertools.product(*choices):
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
        step_s = training_s(job, cut, lengths)
        if step_s is not None:
            timed.append((step_s, len(timed), cut))
    return [cut for _, _, cut in sorted(timed, key=lambda one: one[:2])]


def _pinned(value: int | None, choices: tuple[int, ...]) -> tuple[int, ...]:
    return choices if value is None else (value,)


def _fastest(job: Job, cuts: list[TrainerPlacement], devices: int, lengths: list[int]) -> TrainerOption | None:
    for cut in cuts:
        placed = replace(cut, devices=devices)
        step_s = training_s(job, placed, lengths)
        if step_s is not None:
            return TrainerOption(placement=placed, step_s=step_s)
    return None
