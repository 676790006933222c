"""What a reader of a run log must know besides its records, from the job that is run."""

import msgspec

from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.runlog.header import (
    EngineEntry,
    EnvironmentEntry,
    PoolEntry,
    RewardEntry,
    RunHeader,
    TrainerEntry,
)
from rollart.sched.config import ControllerConfig


def run_header(job: Job, config: ControllerConfig, *, driver: str, code_version: str) -> RunHeader:
    """What a reader of the run log must know besides its records."""
    placement, cluster = job.plan.placement, job.cluster
    engines = placement.engines
    return RunHeader(
        driver=driver,
        policy=job.plan.policy.name,
        seed=job.seed,
        steps=job.steps,
        warmup_steps=job.warmup_steps,
        scenario=job.name,
        code_version=code_version,
        controller=msgspec.to_builtins(config),
        pools=tuple(
            PoolEntry(name=p.name, device=p.device.name, devices=p.count, price_per_hour=p.price_per_hour)
            for p in cluster.pools.values()
        ),
        engines=tuple(
            EngineEntry(engine=index, group=g.name, pool=g.pool, devices=g.tensor_parallel, role=Role(g.role).value)
            for index, g in enumerate(engines)
        ),
        trainer=TrainerEntry(pool=placement.trainer.pool, devices=placement.trainer.devices),
        tasks=tuple(task.name for task in job.tasks),
        environment=EnvironmentEntry(
            slots=placement.environment_slots,
            cores=cluster.environments.cores,
            price_per_core_hour=cluster.environments.price_per_core_hour,
        ),
        reward=RewardEntry(price_per_second=cluster.serverless.price_per_second),
    )
