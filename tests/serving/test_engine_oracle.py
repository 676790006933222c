"""The engine against the one-iteration-per-event oracle, on random workloads."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.serving import Engine, EngineConfig, Loss
from tests.serving.patient import Patient

seeds = st.integers(0, 2**32)


@st.composite
def configs(draw, scheduler="vllm"):
    """Engines small enough for preemption and eviction to be common."""
    block_size = 1 if scheduler == "sglang" else draw(st.sampled_from([1, 4, 16]))
    max_num_seqs = draw(st.sampled_from([1, 2, 4, 16]))
    return EngineConfig(
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max(max_num_seqs, draw(st.sampled_from([4, 16, 64, 1000]))),
        block_size=block_size,
        kv_blocks=max(4, draw(st.sampled_from([60, 120, 200, 400, 2000])) // block_size),
        prefix_caching=draw(st.sampled_from([True, True, True, False])),
        scheduling_lag=draw(st.integers(0, 1)),
        keep_kv_on_update=draw(st.sampled_from([False, False, True])),
        scheduler=scheduler,
    )


def assert_same(config, costs, seed, oracle, run_workload, make_workload, **options):
    """Both engines tell the same story of a workload, however patiently the fast one is woken."""
    slow = oracle.Oracle(config, costs)
    expected = run_workload(slow, make_workload(seed, config, **options))
    for driven in (Engine(config, costs), Patient(Engine(config, costs))):
        found = run_workload(driven, make_workload(seed, config, **options))
        assert found.replies == expected.replies
        assert len(found.completions) == len(expected.completions)
        for ours, theirs in zip(found.completions, expected.completions, strict=True):
            assert ours[:-1] == pytest.approx(theirs[:-1], rel=1e-9, abs=1e-9)
            assert ours.payload is theirs.payload
        assert_same_sums(driven.usage(1000.0), slow)


def assert_same_sums(usage, slow):
    """Counters agree exactly, and nothing is left behind."""
    sums = slow.sums
    assert usage.iterations == sums["iterations"]
    assert usage.prefill_tokens == sums["prefill_tokens"]
    assert usage.decode_tokens == sums["decode_tokens"]
    assert usage.cached_tokens == sums["cached_tokens"]
    assert usage.preemptions == sums["preemptions"]
    assert usage.lost_history_tokens == sums[Loss.HISTORY]
    assert usage.preempted_tokens == sums[Loss.PREEMPTION]
    assert usage.updated_tokens == sums[Loss.UPDATE]
    assert usage.busy_s == pytest.approx(slow.busy_s, rel=1e-9)
    assert (usage.running, usage.waiting, usage.kv_used_blocks) == (0, 0, 0)
    assert usage.kv_idle_blocks == len(slow.kv.idle)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, config=configs(), bend=st.sampled_from([inf, 64.0, 10.0]), roles=st.booleans())
def test_same_as_oracle(seed, config, bend, roles, oracle, run_workload, make_workload, bent_costs):
    assert_same(config, bent_costs(bend), seed, oracle, run_workload, make_workload, roles=roles)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, config=configs())
def test_same_as_oracle_when_moments_coincide(seed, config, oracle, run_workload, make_workload, bent_costs):
    """Dyadic costs and times on a grid: submissions, aborts and suspensions fall on boundaries exactly."""
    assert_same(config, bent_costs(), seed, oracle, run_workload, make_workload, tick_s=1 / 64)


@settings(max_examples=25, deadline=None)
@given(
    seed=seeds,
    config=configs(scheduler="sglang"),
    bend=st.sampled_from([inf, 64.0]),
    tick_s=st.sampled_from([0.0, 1 / 64]),
)
def test_same_as_oracle_with_prompts_first(seed, config, bend, tick_s, oracle, run_workload, make_workload, bent_costs):
    assert_same(config, bent_costs(bend), seed, oracle, run_workload, make_workload, tick_s=tick_s)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(
    seed=seeds,
    config=configs(),
    bend=st.sampled_from([inf, 64.0, 10.0]),
    roles=st.booleans(),
    tick_s=st.sampled_from([0.0, 1 / 64]),
)
def test_same_as_oracle_at_length(seed, config, bend, roles, tick_s, oracle, run_workload, make_workload, bent_costs):
    costs = bent_costs(bend)
    assert_same(config, costs, seed, oracle, run_workload, make_workload, roles=roles, tick_s=tick_s)
