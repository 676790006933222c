"""The data of a planning problem under one policy: what the model's coefficients are made from."""

from dataclasses import dataclass

from rollart.domain.job import Job
from rollart.domain.plan import PolicySpec
from rollart.domain.planning import Rules
from rollart.sched.placement.columns import Column, drain_columns, steady_columns
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.draining import Drain, drains
from rollart.sched.placement.kinds import EngineKind
from rollart.sched.placement.lockstep import lockstep_drains
from rollart.sched.placement.points import Point, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Kinds, demands and operating points of a job under a policy."""

    job: Job
    rules: Rules
    policy: PolicySpec
    composition: Composition
    penalty: float
    """Factor of at least 1 on the objective for what the policy asks of learning."""
    kinds: tuple[EngineKind, ...]
    demands: tuple[TaskDemand, ...]
    points: tuple[Point, ...]
    """Of a policy without a barrier."""
    drains: tuple[Drain, ...]
    """Of a policy with one."""

    def columns(self, step_s: float, window_s: float) -> list[Column]:
        """What engines yield in a step of `step_s` that leaves `window_s` to the rollout."""
        if window_s <= 0:
            return []
        if self.composition.barrier:
            return drain_columns(self.drains, window_s)
        return steady_columns(self.points, self.demands, self.composition, step_s, window_s)

    @property
    def slots(self) -> int:
        """Most environments at once."""
        bounds = self.rules.environment_slots
        return self.job.plan.placement.environment_slots if bounds is None else int(bounds.most)


def instance(
    job: Job, rules: Rules, policy: PolicySpec, penalty: float, kinds: list[EngineKind], demands: list[TaskDemand]
) -> Instance:
    """The data under a policy; operating points are those that its composition needs."""
    composition = Composition.of(policy)
    steady = () if composition.barrier else tuple(points(kinds, demands, job.plan.placement.kv_return))
    return Instance(
        job=job,
        rules=rules,
        policy=policy,
        composition=composition,
        penalty=penalty,
        kinds=tuple(kinds),
        demands=tuple(demands),
        points=steady,
        drains=_drains(composition, kinds, demands),
    )


def _drains(composition: Composition, kinds: list[EngineKind], demands: list[TaskDemand]) -> tuple[Drain, ...]:
    if not composition.barrier:
        return ()
    return tuple(lockstep_drains(kinds, demands) if composition.lockstep else drains(kinds, demands))
