"""Checks of a placement against cluster, model and tasks; what fits is asked of the cost models."""

from collections.abc import Callable, Iterator, Sequence

from rollart.costs.engine_shape import EngineShape, kv_capacity_tokens
from rollart.costs.trainer_shape import TrainerShape, check_memory
from rollart.costs.training_assumptions import training_assumptions_for
from rollart.domain.cluster import Cluster, Pool
from rollart.domain.errors import RollArtError
from rollart.domain.job import Job, Precision
from rollart.domain.model import Model
from rollart.domain.plan import EngineGroup, Placement, Role, TrainerPlacement
from rollart.domain.task import Task
from rollart.domain.training import Training
from rollart.scenario.problems import Problem, nearest

_ROLLOUT = (Role.BOTH, Role.DECODE)
"""Roles that a trajectory can be bound to; prefill engines are chosen beside them."""


def placement_problems(job: Job) -> Iterator[Problem]:
    """What does not fit together in the placement of a job."""
    placement, cluster, model = job.plan.placement, job.cluster, job.model
    yield from _trainer_problems(placement.trainer, cluster, model, job.training)
    names = [group.name for group in placement.engine_groups]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(place="placement.engines", text=f"{name!r} is given twice; names must differ")
    for group in placement.engine_groups:
        served = model if group.model is None else job.models[group.model]
        yield from _group_problems(group, cluster, served, job.precision, placement.trainer)
    yield from _capacity_problems(placement, cluster)
    yield from _role_problems(placement)
    yield from _affinity_problems(job.tasks, placement)
    yield from _share_problems(job.tasks, placement)
    yield from _judge_problems(job.tasks, placement)
    engines = sum(group.engines for group in placement.engine_groups)
    last = max((preemption.engine for preemption in job.faults.preemptions), default=0)
    if last >= engines:
        text = f"names engine {last}; the placement has engines 0 to {engines - 1}"
        yield Problem(place="faults.preemption_trace", text=text)


def trainer_shape(trainer: TrainerPlacement) -> TrainerShape:
    """The cut of a placed trainer; raises InputError where it does not divide."""
    return TrainerShape(
        devices=trainer.devices,
        tp=trainer.tensor_parallel,
        pp=trainer.pipeline_parallel,
        cp=trainer.context_parallel,
        dp=max(1, trainer.data_parallel),
        ep=trainer.expert_parallel,
    )


def check_trainer(trainer: TrainerPlacement, pool: Pool, model: Model, training: Training) -> None:
    """Raise InputError or CapacityError where training cannot be cut so, or does not fit into memory."""
    shape = trainer_shape(trainer)
    shape.check_model(model, pool.device)
    check_memory(model, pool.device, shape, training, training_assumptions_for(pool.device))


def check_engine(group: EngineGroup, pool: Pool, model: Model, precision: Precision) -> int:
    """Tokens of KV that an engine holds; InputError or CapacityError where it is impossible or does not fit."""
    shape = EngineShape(
        model=model,
        device=pool.device,
        tensor_parallel=group.tensor_parallel,
        expert_parallel=group.expert_parallel,
        precision=precision.weights,
        kv_dtype=precision.kv_cache,
        max_num_seqs=group.max_num_seqs,
        max_num_batched_tokens=group.max_num_batched_tokens,
        gpu_memory_utilization=group.gpu_memory_utilization,
    )
    return kv_capacity_tokens(shape)


def _trainer_problems(
    trainer: TrainerPlacement, cluster: Cluster, model: Model, training: Training
) -> Iterator[Problem]:
    pool = cluster.pools.get(trainer.pool)
    if pool is None:
        yield _no_pool("placement.trainer", trainer.pool, cluster)
        return
    yield from _node_problems("placement.trainer", trainer.tensor_parallel, pool)
    yield from _raised("placement.trainer", lambda: check_trainer(trainer, pool, model, training))


def _group_problems(
    group: EngineGroup, cluster: Cluster, model: Model, precision: Precision, trainer: TrainerPlacement
) -> Iterator[Problem]:
    place = f"placement.engines.{group.name}"
    pool = cluster.pools.get(group.pool)
    if pool is None:
        yield _no_pool(place, group.pool, cluster)
        return
    yield from _node_problems(place, group.tensor_parallel, pool)
    yield from _raised(place, lambda: check_engine(group, pool, model, precision))
    if group.time_shared and group.pool != trainer.pool:
        text = f"a time-shared group must be on the trainer's pool {trainer.pool!r}, not {group.pool!r}"
        yield Problem(place=f"{place}.time_shared", text=text)
    if group.model is not None and group.role is not Role.JUDGE:
        yield Problem(place=f"{place}.model", text="only a group with role judge has a model of its own")


def _no_pool(place: str, pool: str, cluster: Cluster) -> Problem:
    return Problem(place=f"{place}.pool", text=f"there is no pool {pool!r}; {nearest(pool, list(cluster.pools))}")


def _raised(place: str, check: Callable[[], object]) -> Iterator[Problem]:
    """What a check raises, as a problem."""
    try:
        check()
    except RollArtError as error:
        yield Problem(place=place, text=str(error))


def _node_problems(place: str, tensor_parallel: int, pool: Pool) -> Iterator[Problem]:
    """Whole engines, or tensor ranks, must fill a node; else one of them would be cut by its edge."""
    per_node = pool.devices_per_node
    if tensor_parallel < per_node and per_node % tensor_parallel and pool.count > per_node:
        text = f"{tensor_parallel} does not divide the {per_node} devices of a node of {pool.name}"
        yield Problem(place=f"{place}.tensor_parallel", text=text)


def _capacity_problems(placement: Placement, cluster: Cluster) -> Iterator[Problem]:
    """Devices of a pool: time-shared engines live on the trainer's devices, all others on devices of their own."""
    trainer = placement.trainer
    for pool in cluster.pools.values():
        groups = [group for group in placement.engine_groups if group.pool == pool.name]
        own = sum(group.devices for group in groups if not group.time_shared)
        shared = sum(group.devices for group in groups if group.time_shared)
        training = trainer.devices if trainer.pool == pool.name else 0
        if training and shared > training:
            text = f"time-shared engines take {shared} devices of {pool.name}; the trainer has {training}"
            yield Problem(place="placement.engines", text=text)
        if own + training > pool.count:
            text = f"engines take {own} and the trainer {training} devices of {pool.name}, which has {pool.count}"
            yield Problem(place="placement", text=text)


def _role_problems(placement: Placement) -> Iterator[Problem]:
    roles = {group.role for group in placement.engine_groups}
    if (Role.PREFILL in roles) != (Role.DECODE in roles):
        there, lacking = ("prefill", "decode") if Role.PREFILL in roles else ("decode", "prefill")
        text = f"there are engines with role {there} and none with role {lacking}; they work in pairs"
        yield Problem(place="placement.engines", text=text)
    elif not roles & {Role.BOTH, Role.DECODE}:
        yield Problem(place="placement.engines", text="no engine serves rollout; one must have role both")


def _affinity_problems(tasks: Sequence[Task], placement: Placement) -> Iterator[Problem]:
    names = [task.name for task in tasks]
    groups = {group.name: group for group in placement.engine_groups}
    rollout = [name for name, group in groups.items() if group.role in _ROLLOUT]
    for task, named in placement.affinity.items():
        place = f"placement.affinity.{task}"
        if task not in names and task != "default":
            yield Problem(place=place, text=f"there is no task {task!r}; {nearest(task, [*names, 'default'])}")
        for name in named:
            if name not in groups:
                yield Problem(place=place, text=f"there is no engine group {name!r}; {nearest(name, rollout)}")
            elif name not in rollout:
                text = f"{name!r} has role {groups[name].role.value}; must be a group with role both or decode"
                yield Problem(place=place, text=text)


def _share_problems(tasks: Sequence[Task], placement: Placement) -> Iterator[Problem]:
    names = [task.name for task in tasks]
    for task, shares in placement.shares.items():
        place = f"placement.shares.{task}"
        if task not in names:
            yield Problem(place=place, text=f"there is no task {task!r}; {nearest(task, names)}")
        suited = placement.affinity.get(task, placement.affinity.get("default"))
        known = (
            [group.name for group in placement.engine_groups if group.role in _ROLLOUT] if suited is None else suited
        )
        for name in sorted({*shares, *known}):
            if name not in known:
                yield Problem(
                    place=place, text=f"{name!r} is not among the groups that suit the task: {', '.join(known)}"
                )
            elif name not in shares:
                yield Problem(place=place, text=f"has no share for {name!r}; must name every group that suits the task")


def _judge_problems(tasks: Sequence[Task], placement: Placement) -> Iterator[Problem]:
    judges = [group.name for group in placement.engine_groups if group.role is Role.JUDGE]
    for task in tasks:
        wanted = task.reward.engine_group
        if wanted is not None and wanted not in judges:
            known = nearest(wanted, judges) if judges else "no engine group has role judge"
            text = f"there is no judge {wanted!r}; {known}"
            yield Problem(place=f"tasks.{task.name}.reward.engine_group", text=text)
