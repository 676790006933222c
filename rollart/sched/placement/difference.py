"""When two plans differ in substance: another trainer, policy or kind of engines, or tasks that run elsewhere."""

from rollart.domain.plan import Placement
from rollart.sched.placement.report import Candidate

_TRAINER = 0.1
"""Relative difference of training devices from which on a trainer is another one."""
_ROLLOUT = 0.25
"""Part of the rollout's devices that must be of other kinds."""
_SERVED = 0.3
"""Part of a task that must be generated elsewhere."""


def differs(one: Candidate, other: Candidate) -> bool:
    """Whether it is worth judging both."""
    here, there = one.plan.placement, other.plan.placement
    return (
        one.plan.policy != other.plan.policy
        or here.trainer.pool != there.trainer.pool
        or abs(here.trainer.devices - there.trainer.devices) > _TRAINER * max(here.trainer.devices, 1)
        or _distance(_devices(here), _devices(there)) > _ROLLOUT
        or any(
            _distance(_pools(one, task), _pools(other, task)) > _SERVED
            for task in one.predicted.shares.keys() & other.predicted.shares.keys()
        )
    )


def _devices(placement: Placement) -> dict[object, float]:
    """Devices by pool, cut and role."""
    found: dict[object, float] = {}
    for group in placement.engine_groups:
        key = (group.pool, group.tensor_parallel, group.expert_parallel, group.role)
        found[key] = found.get(key, 0.0) + group.devices
    return found


def _pools(candidate: Candidate, task: str) -> dict[object, float]:
    """Pool -> part of a task."""
    pool_of = {group.name: group.pool for group in candidate.plan.placement.engine_groups}
    found: dict[object, float] = {}
    for name, share in candidate.predicted.shares[task].items():
        found[pool_of[name]] = found.get(pool_of[name], 0.0) + share
    return found


def _distance(one: dict[object, float], other: dict[object, float]) -> float:
    """Half the sum of the differences, as a part of the larger whole."""
    whole = max(sum(one.values()), sum(other.values()), 1e-9)
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()) / 2 / whole
