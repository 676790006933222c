"""One brain: on fake workers the executor decides what the simulator decides, and its logs replay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.exec.fake.host import Models
from rollart.sched.presets import PRESETS
from tests.exec.runs import run, toy_models
from tests.sim.random_jobs import KV_BLOCKS, random_case
from tests.sim.runs import run as simulate

SEEDS = st.integers(0, 2**32)


def models_of(case) -> Models:
    groups = case.job.plan.placement.engine_groups
    costs = {group.name: case.costs for group in groups}
    return toy_models(case.job, case.workload, costs=costs, kv_blocks=KV_BLOCKS)


def assert_same_log(case) -> None:
    """Every record of both drivers, with its time, one by one."""
    groups = case.job.plan.placement.engine_groups
    simulated = simulate(
        case.job, case.workload, costs={group.name: case.costs for group in groups}, kv_blocks=KV_BLOCKS
    )
    executed = run(models_of(case))
    for ours, theirs in zip(executed.records, simulated.records, strict=False):
        assert ours == theirs
    assert len(executed.records) == len(simulated.records)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_differential_on_every_preset(preset):
    for seed in range(8):
        assert_same_log(random_case(seed, preset))


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_differential_on_random_jobs(seed):
    assert_same_log(random_case(seed))


def assert_sound(finished) -> None:
    """The log's promises hold, and its events make a fresh controller decide the same."""
    assert finished.invariants().violation is None
    assert finished.replay().difference is None
    assert finished.statistics.open_trajectories == 0


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_replay_of_a_run_by_the_wall_clock(preset):
    for seed in range(4):
        case = random_case(seed, preset)
        finished = run(models_of(case), speed=2000.0)
        assert_sound(finished)
        assert len(finished.statistics.steps) == case.job.steps


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_replay_of_random_jobs_by_the_wall_clock(seed):
    assert_sound(run(models_of(random_case(seed)), speed=5000.0))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(SEEDS, st.sampled_from(sorted(PRESETS)))
def test_differential_on_many_random_jobs(seed, preset):
    assert_same_log(random_case(seed, preset))
