"""Counters of all workers, written to the run log at the end of every step."""

from collections.abc import Iterator

from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.workers import Workers
from rollart.runlog.samples import (
    EngineSample,
    EnvironmentSample,
    LinkSample,
    RewardSample,
    Sample,
    TrainerSample,
)
from rollart.runlog.writer import RunLogWriter


def write_samples(workers: Workers, now: float, log: RunLogWriter) -> None:
    """Log one reading of every counter."""
    for sample in samples_of(workers):
        log.sample(now, sample)


def samples_of(workers: Workers) -> Iterator[Sample]:
    """One reading of every counter."""
    for worker in workers.engines:
        yield _engine_sample(worker)
    yield TrainerSample(busy_s=workers.trainer.busy_s)
    yield LinkSample(link="weights", bytes=int(workers.store.bytes), busy_s=workers.store.busy_s)
    for name, link in sorted(workers.links.items()):
        yield LinkSample(link=name, bytes=int(link.bytes), busy_s=link.busy_s)
    environments, rewards = workers.environments, workers.rewards
    yield EnvironmentSample(busy_s=environments.busy_core_s, slots_s=environments.slots_s)
    yield RewardSample(
        busy_s=rewards.busy_s, billed_s=rewards.functions.billed_s, cold_starts=rewards.functions.cold_starts
    )


def _engine_sample(worker: EngineWorker) -> EngineSample:
    usages = worker.usage()
    last = usages[-1]
    return EngineSample(
        engine=worker.index,
        busy_s=sum(u.busy_s for u in usages),
        iterations=sum(u.iterations for u in usages),
        prefill_tokens=sum(u.prefill_tokens for u in usages),
        decode_tokens=sum(u.decode_tokens for u in usages),
        cached_tokens=sum(u.cached_tokens for u in usages),
        recomputed_tokens=sum(u.lost_history_tokens + u.preempted_tokens + u.updated_tokens for u in usages),
        recompute_preempted_tokens=sum(u.preempted_tokens for u in usages),
        preemptions=sum(u.preemptions for u in usages),
        kv_block_s=sum(u.kv_block_s for u in usages),
        kv_capacity_blocks=worker.kv_blocks,
        running=last.running if worker.up else 0,
        waiting=last.waiting if worker.up else 0,
    )
