"""Counters of all workers, written to the run log at the end of every step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rollart.runlog.samples import (
    EngineSample,
    EnvironmentSample,
    LinkSample,
    RewardSample,
    Sample,
    TrainerSample,
)
from rollart.runlog.writer import RunLogWriter
from rollart.sim.engine_worker import EngineWorker

if TYPE_CHECKING:
    from rollart.sim.simulation import Simulation


def write_samples(simulation: "Simulation", log: RunLogWriter) -> None:
    """One reading of every counter."""
    now = simulation.clock.now
    for sample in _samples(simulation):
        log.sample(now, sample)


def _samples(simulation: "Simulation") -> Iterator[Sample]:
    for worker in simulation.engines:
        yield _engine_sample(worker)
    yield TrainerSample(busy_s=simulation.trainer.busy_s)
    yield LinkSample(link="weights", bytes=int(simulation.store.bytes), busy_s=simulation.store.busy_s)
    for name, link in sorted(simulation.links.items()):
        yield LinkSample(link=name, bytes=int(link.bytes), busy_s=link.busy_s)
    environments, rewards = simulation.environments, simulation.rewards
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
