"""The costs of a job's engines, trainer and weight movement, as its placement asks for them."""

from collections.abc import Iterable

from rollart.costs.calibrated import CalibratedEngine, CalibratedTrainer
from rollart.costs.engine_shape import EngineShape
from rollart.costs.interface import EngineCosts, TrainingCosts
from rollart.costs.select import engine_costs as costs_of
from rollart.costs.trainer_shape import TrainerShape
from rollart.costs.training import RooflineTrainer
from rollart.costs.weights import GATHER_CONVERT_BYTES_PER_S, bulk_link, pull_s, push_s
from rollart.domain.cluster import Link
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Role, TrainerPlacement


def engine_costs(job: Job, group: EngineGroup) -> EngineCosts:
    """Costs of an engine of this group; CapacityError when the model does not fit its devices."""
    costs = costs_of(
        EngineShape(
            model=job.models[group.model] if group.model is not None else job.model,
            device=job.cluster.pools[group.pool].device,
            tensor_parallel=group.tensor_parallel,
            expert_parallel=group.expert_parallel,
            precision=job.precision.weights,
            kv_dtype=job.precision.kv_cache,
            max_num_seqs=group.max_num_seqs,
            max_num_batched_tokens=group.max_num_batched_tokens,
            gpu_memory_utilization=group.gpu_memory_utilization,
        ),
        job.costs,
    )
    factor = job.calibration.engines.get(group.pool, 1.0)
    return costs if factor == 1.0 else CalibratedEngine(costs, factor)


def training_costs(job: Job, trainer: TrainerPlacement | None = None) -> TrainingCosts:
    """Costs of a training step on the plan's trainer, or on another; CapacityError when it does not fit."""
    trainer = trainer or job.plan.placement.trainer
    pool = job.cluster.pools[trainer.pool]
    costs = RooflineTrainer(
        model=job.model,
        device=pool.device,
        shape=TrainerShape(
            devices=trainer.devices,
            tp=trainer.tensor_parallel,
            pp=trainer.pipeline_parallel,
            dp=trainer.data_parallel,
            cp=trainer.context_parallel,
            ep=trainer.expert_parallel,
        ),
        training=job.training,
        fabric=pool.fabric,
    )
    factor = job.calibration.trainer
    return costs if factor == 1.0 else CalibratedTrainer(costs, factor)


def slowest_path(job: Job, trainer: TrainerPlacement, pools: Iterable[str]) -> Link:
    """The slowest path of weights from a trainer to pools with rollout engines."""
    paths = (bulk_link(job.cluster.link(trainer.pool, pool), trainer.publishers) for pool in sorted(set(pools)))
    return min(paths, key=lambda path: path.bandwidth_bytes_per_s)


def fetch_s(job: Job, trainer: TrainerPlacement, pools: Iterable[str], weight_bytes: float) -> float:
    """Seconds from the end of a training step until all engines' hosts have the weights, pulls beside the push."""
    pools = sorted(set(pools))
    gather_bytes_per_s = GATHER_CONVERT_BYTES_PER_S * trainer.publishers
    pushed_s = push_s(weight_bytes, slowest_path(job, trainer, pools), gather_bytes_per_s)
    return max(pushed_s, *(pull_s(weight_bytes, bulk_link(job.cluster.link(trainer.pool, pool))) for pool in pools))


def rollout_pools(job: Job) -> list[str]:
    """Pools of the plan that hold engines of the policy model."""
    return [group.pool for group in job.plan.placement.engine_groups if group.role is not Role.JUDGE]
