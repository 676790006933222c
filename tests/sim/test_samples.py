"""Counters in the run log, against what a small run must have done."""

from itertools import pairwise

from rollart.domain.events import TrainingEnded, TurnGenerated
from rollart.domain.job import Faults, Preemption
from rollart.domain.plan import Role
from rollart.runlog.samples import EngineSample, EnvironmentSample, LinkSample, RewardSample, TrainerSample
from tests.modelled.toys import engines, job, same_for_all
from tests.sim.runs import run


def last(finished, kind, **where):
    found = [
        record for _, record in finished.of(kind) if all(getattr(record, key) == value for key, value in where.items())
    ]
    return found[-1]


def test_every_step_ends_with_one_reading_of_every_counter():
    finished = run(job(steps=3, groups=(engines(engines=2),)), same_for_all())
    ends = [time_s for time_s, _ in finished.of(TrainingEnded)]
    assert [time_s for time_s, _ in finished.of(TrainerSample)] == ends
    assert [(time_s, sample.engine) for time_s, sample in finished.of(EngineSample)] == [
        (time_s, engine) for time_s in ends for engine in (0, 1)
    ]


def test_the_counters_of_a_sync_run():
    finished = run(job(policy="sync+", steps=3), same_for_all(outputs=(8, 4), reset_s=1.0, env_s=0.5, reward_s=0.25))
    engine = last(finished, EngineSample)
    # 24 trajectories; their prefills make the first token of each turn, 7 + 3 more are decoded.
    assert engine.decode_tokens == 24 * 10
    assert last(finished, TrainerSample).busy_s == 3 * 4.0
    assert last(finished, EnvironmentSample).busy_s == 24 * 2.0
    assert last(finished, RewardSample).billed_s == 24 * 0.25
    assert last(finished, LinkSample, link="weights").bytes == 2 * 2_000_000_000
    assert (engine.running, engine.waiting, engine.preemptions) == (0, 0, 0)


def test_cached_and_computed_tokens_are_the_prompts():
    finished = run(job(policy="sync+", steps=1), same_for_all(prompt_tokens=64, outputs=(8, 4), observations=16))
    engine = last(finished, EngineSample)
    turns = [event for _, event in finished.of(TurnGenerated)]
    assert engine.prefill_tokens + engine.cached_tokens == 8 * 64 + 8 * (64 + 8 + 16)
    assert engine.cached_tokens == sum(turn.cached_tokens for turn in turns)


def test_counters_go_on_through_a_restart():
    faults = Faults(engine_restart_s=1.0, preemptions=(Preemption(time_s=9.0, engine=0, away_s=1.0),))
    finished = run(job(policy="sync+", steps=4, faults=faults), same_for_all(outputs=(64,)))
    samples = [sample for _, sample in finished.of(EngineSample)]
    assert finished.simulation.workers.engines[0].incarnation == 1
    for before, after in pairwise(samples):
        assert after.busy_s >= before.busy_s
        assert after.decode_tokens >= before.decode_tokens
        assert after.kv_block_s >= before.kv_block_s


def test_a_dead_engine_has_nothing_running():
    faults = Faults(engine_restart_s=1e5, preemptions=(Preemption(time_s=3.0, engine=1, away_s=1.0),))
    finished = run(job(steps=1, groups=(engines(engines=2),), faults=faults), same_for_all(outputs=(64,)))
    sample = last(finished, EngineSample, engine=1)
    assert (sample.running, sample.waiting) == (0, 0)
    assert sample.decode_tokens > 0


def test_links_between_pools_are_listed_by_name():
    groups = (engines("fast", role=Role.PREFILL), engines("cheap", role=Role.DECODE))
    finished = run(job(steps=1, groups=groups), same_for_all(prompt_tokens=64, outputs=(8,)))
    link = last(finished, LinkSample, link="cheap-fast")
    # 8 prompts of 64 tokens of 1 MB each, over 1 GB/s.
    assert (link.bytes, round(link.busy_s, 9)) == (512_000_000, 0.512)
