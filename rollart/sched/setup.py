"""A controller's configuration out of a job."""

from rollart.domain.batch import groups_per_batch
from rollart.domain.errors import ScenarioError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Role
from rollart.domain.task import Task
from rollart.sched.config import ControllerConfig, EngineClass, TaskConfig


def controller_config(job: Job) -> ControllerConfig:
    """What the controller of this job is told; ScenarioError if the batch cannot be cut into groups."""
    placement = job.plan.placement
    groups = groups_per_batch(job.tasks, job.training.batch_size)
    _refuse_filtering_all(job)
    return ControllerConfig(
        tasks=tuple(_task(job, task, groups[task.name]) for task in job.tasks),
        classes=tuple(_engine_class(job, group) for group in placement.engine_groups),
        context_limit=job.training.context_limit,
        steps=job.steps,
        environment_slots=placement.environment_slots,
        policy_name=job.plan.policy.name,
        policy=job.plan.policy.parts,
    )


def _refuse_filtering_all(job: Job) -> None:
    """One reward equals itself: a filter would drop every group of one, and no batch would ever be complete."""
    alone = [task.name for task in job.tasks if task.group_size == 1]
    if alone and job.plan.policy.parts["group"].get("filter_equal_rewards"):
        raise ScenarioError(
            f"policy.group.filter_equal_rewards: task {alone[0]} has groups of 1, which it would all filter; "
            "must be false, or the group size 2 or more"
        )


def _task(job: Job, task: Task, groups: int) -> TaskConfig:
    placement = job.plan.placement
    rollout = [i for i, group in enumerate(placement.engine_groups) if group.role is not Role.JUDGE]
    names = placement.affinity.get(task.name, placement.affinity.get("default"))
    shares = placement.shares.get(task.name)
    suited = [i for i in rollout if names is None or placement.engine_groups[i].name in names]
    return TaskConfig(
        name=task.name,
        group_size=task.group_size,
        groups_per_batch=groups,
        max_turns=task.max_turns,
        suited=tuple(suited),
        shares=tuple(shares[placement.engine_groups[i].name] for i in suited) if shares else (),
        fallback=tuple(i for i in rollout if i not in suited),
    )


def _engine_class(job: Job, group: EngineGroup) -> EngineClass:
    device = job.cluster.pools[group.pool].device
    return EngineClass(
        name=group.name,
        role=group.role,
        engines=group.engines,
        # Decoding, where most of a rollout's time goes, is bound by memory bandwidth.
        weight=device.memory_bandwidth_bytes_per_s * group.tensor_parallel / 1e12,
        time_shared=group.time_shared,
    )
