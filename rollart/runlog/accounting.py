"""Shares of hardware: what a step used and cost, and which part of the engines' work was wasted."""

import numpy as np

from rollart.domain.trajectory import End
from rollart.runlog.counters import ENGINE_COUNTERS, Counters, Reading
from rollart.runlog.header import RunHeader
from rollart.runlog.ledger import Array
from rollart.runlog.statistics import Usage, Waste
from rollart.runlog.trajectories import ENDS, Trajectories

_S_PER_H = 3600.0
_COLUMN = {name: column for column, name in enumerate(ENGINE_COUNTERS)}


def usage_between(header: RunHeader, begin: Reading | None, end: Reading | None, duration_s: float) -> Usage | None:
    """Usage from one reading to another; None if either is missing."""
    if begin is None or end is None:
        return None
    change = end.groups - begin.groups
    busy = {pool.name: 0.0 for pool in header.pools}
    for group, seconds in zip(_group_pools(header), change[:, _COLUMN["busy_s"]].tolist(), strict=True):
        busy[group] += seconds
    busy[header.trainer.pool] += (end.trainer_busy_s - begin.trainer_busy_s) * header.trainer.devices
    capacity = float(end.groups[:, _COLUMN["kv_capacity_blocks"]].sum())
    return Usage(
        pool_busy_device_s=busy,
        kv_block_s=float(change[:, _COLUMN["kv_block_s"]].sum()),
        kv_capacity_block_s=capacity * duration_s,
        cost=_rate_per_s(header) * duration_s
        + header.reward.price_per_second * (end.reward_billed_s - begin.reward_billed_s),
    )


def waste_of(counters: Counters, trajectories: Trajectories) -> Waste | None:
    """Waste up to the last reading; None if nothing was sampled."""
    if len(counters.readings) < 2:
        return None
    groups = counters.readings[-1].groups
    busy = groups[:, _COLUMN["busy_s"]]
    residency = trajectories.rows["residency_s"]
    end = trajectories.rows["end"]
    rate = _ratio(busy, residency.sum(axis=0) + trajectories.failed_attempts_s)

    def spent(which: End) -> float:
        return float((rate * residency[end == ENDS.index(which)].sum(axis=0)).sum())

    prefill = busy * _ratio(trajectories.prefill_s, trajectories.prefill_s + trajectories.decode_s)
    per_token = _ratio(prefill, groups[:, _COLUMN["prefill_tokens"]])
    preempted = groups[:, _COLUMN["recompute_preempted_tokens"]]
    recomputed = groups[:, _COLUMN["recomputed_tokens"]] - preempted
    return Waste(
        stale=spent(End.STALE),
        surplus=spent(End.SURPLUS),
        failed=spent(End.FAILED) + float((rate * trajectories.failed_attempts_s).sum()),
        recomputed=float((per_token * recomputed).sum()),
        preempted=float((per_token * preempted).sum()),
    )


def _rate_per_s(header: RunHeader) -> float:
    devices = sum(pool.devices * pool.price_per_hour for pool in header.pools)
    return (devices + header.environment.cores * header.environment.price_per_core_hour) / _S_PER_H


def _group_pools(header: RunHeader) -> list[str]:
    """Pool of each engine group, in order of first appearance."""
    return list({entry.group: entry.pool for entry in header.engines}.values())


def _ratio(over: Array, under: Array) -> Array:
    """Elementwise; 0 where there is nothing to share out."""
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)
