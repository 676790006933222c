"""Solving: from a problem to the best plans of the model, with their bound.

The entry point of the model's side of the planner; whoever judges candidates by simulation starts here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rollart.domain.job import Job
from rollart.domain.planning import Limits, Objective
from rollart.sched.placement.planner import Candidate as Found
from rollart.sched.placement.planner import plan
from rollart.sched.placement.rent import devices_taken, price_per_hour
from rollart.sched.placement.report import Candidate, PoolUse, Prediction, SolveReport
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be planned."""

    job: Job
    """Its plan is the starting point: what the model does not decide stays as it is there."""
    workload: Workload


def solve(
    problem: Problem,
    *,
    clock: Callable[[], float],
    objective: Objective = Objective.STEP_TIME,
    limits: Limits | None = None,  # noqa: ARG001 - not bounded by the present model
    time_limit_s: float = 30.0,
    top: int = 3,
    seed: int = 0,
    workers: int = 1,  # noqa: ARG001 - the present model is solved on one core
) -> SolveReport:
    """The best `top` plans, different in substance; `clock` gives seconds. Raises CapacityError where nothing fits."""
    found = plan(problem.job, problem.workload, None, clock=clock, time_limit_s=time_limit_s, top=top)
    candidates = tuple(_candidate(problem.job, one) for one in (found.best, *found.alternatives))
    return SolveReport(
        status=found.status,
        objective=objective,
        candidates=candidates,
        bound=found.bound_s,
        floor=0.0,
        wall_s=found.wall_s,
        seed=seed,
        binding=(),
    )


def _candidate(job: Job, found: Found) -> Candidate:
    placement = found.plan.placement
    taken = {name: devices_taken(placement, name) for name in job.cluster.pools}
    hourly = price_per_hour(job.cluster, taken)
    pools = {}
    for name, pool in job.cluster.pools.items():
        training = placement.trainer.devices if placement.trainer.pool == name else 0
        pools[name] = PoolUse(
            training_devices=training,
            rollout_devices=taken[name] - training,
            idle_devices=pool.count - taken[name],
            busy=1.0,
            bottleneck="",
        )
    predicted = Prediction(
        step_s=found.predicted_s,
        cost_per_step=hourly * found.predicted_s / 3600.0,
        rollout_s=found.rollout_s,
        training_s=found.training_s,
        update_s=max(0.0, found.predicted_s - max(found.rollout_s, found.training_s)),
        bottleneck="",
        pools=pools,
        shares={},
    )
    return Candidate(plan=found.plan, predicted=predicted, value=found.predicted_s)
