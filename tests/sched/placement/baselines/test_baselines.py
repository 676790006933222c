"""Other ways to plan, on a cluster small enough to know what they must answer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rollart.scenario.load import load_scenario
from rollart.sched.placement.baselines.enumeration import enumeration
from rollart.sched.placement.baselines.fixed_split import fixed_split
from rollart.sched.placement.baselines.multi_level import multi_level
from rollart.sched.placement.baselines.random_search import random_search
from rollart.sched.placement.baselines.stage_balance import stage_balance
from rollart.sched.placement.baselines.two_phase import chosen_resources, two_phase
from rollart.sched.placement.ground import ground_of
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.trial import Outcome, Trials

PAPER = Path(__file__).resolve().parents[4] / "experiments/scenarios/paper-128.yaml"


@pytest.fixture(scope="module")
def ground():
    scenario = load_scenario(PAPER)
    return ground_of(scenario.job(), scenario.workload())


def devices(plan):
    """Training and rollout devices of a plan."""
    placement = plan.placement
    return placement.trainer.devices, sum(group.devices for group in placement.engine_groups)


@pytest.mark.parametrize(("ratio", "training"), [(1.0, 64), (3.0, 32)])
def test_fixed_splits_keep_their_ratio(ground, ratio, training):
    plan = fixed_split(ground, ratio)
    assert plan.placement.trainer.pool == "h800"
    assert devices(plan) == (training, 128 - training)
    assert plan.placement.affinity == {}


def test_the_two_phases_balance_training_and_generation(ground):
    found = chosen_resources(ground)
    plan = two_phase(ground)
    assert plan.placement.trainer.devices == found.trainer.placement.devices
    assert {group.pool: group.engines for group in plan.placement.engine_groups}.keys() <= {"h800", "h20"}
    assert found.slower_s >= found.trainer.step_s
    slower = [option for option in ground.trainers if option.step_s > found.slower_s]
    assert found.trainer not in slower


def test_pools_of_one_kind_are_one_until_the_second_phase(ground):
    pools = ground.job.cluster.pools
    half = replace(pools["h800"], count=48)
    narrow = replace(half, name="far", fabric=replace(half.fabric, bandwidth_bytes_per_s=1e9))
    cluster = replace(ground.job.cluster, pools={"far": narrow, "h800": half, "h20": pools["h20"]})
    job = replace(ground.job, cluster=cluster)
    plan = two_phase(ground_of(job, load_scenario(PAPER).workload()))
    # The trainer goes where its nodes have the wider network.
    assert plan.placement.trainer.pool == "h800"
    used = {group.pool: group.devices for group in plan.placement.engine_groups}
    assert used.get("h800", 0) + plan.placement.trainer.devices <= 48
    assert used.get("far", 0) <= 48


def test_stage_balance_uses_one_pool_to_generate(ground):
    plan = stage_balance(ground)
    assert len(plan.placement.engine_groups) == 1
    (group,) = plan.placement.engine_groups
    assert group.tensor_parallel == ground.least_size(group.pool)


def test_a_bigger_batch_takes_an_engine_longer(ground):
    training = replace(ground.job.training, batch_size=2 * ground.job.training.batch_size)
    doubled = ground_of(replace(ground.job, training=training), load_scenario(PAPER).workload())
    assert doubled.batches_per_s == pytest.approx([rate / 2 for rate in ground.batches_per_s], rel=0.05)


def step_s(trial):
    """Fewer training devices, fewer engines: slower."""
    placement = trial.job.plan.placement
    engines = sum(group.engines for group in placement.engine_groups)
    return 1000.0 / placement.trainer.devices + 100.0 / engines


def evaluate(trials):
    return [Outcome(step_s=(step_s(trial),), cost=(1.0,), trajectories=1) for trial in trials]


@pytest.mark.parametrize("search", [random_search, multi_level])
def test_searches_keep_to_their_budget_and_take_the_best(ground, search):
    asked = []

    def counting(trials):
        asked.extend(trials)
        return evaluate(trials)

    judge = Judge(trials=Trials(job=ground.job))
    plan = search(ground, judge, counting, np.random.default_rng(3), 20)
    assert 10 <= len(asked) <= 20
    assert plan == min(asked, key=step_s).job.plan
    assert plan == search(ground, judge, evaluate, np.random.default_rng(3), 20)


def test_enumeration_repeats_what_is_near_the_best(ground):
    plans = [ground.grid.drawn(np.random.default_rng(seed)) for seed in range(6)]
    listed = enumeration(plans, Judge(trials=Trials(job=ground.job)), evaluate, repetitions=3, margin=0.05)
    losses = [one.loss for one in listed]
    assert losses[0] == min(losses)
    assert all((len(one.outcomes) == 3) == (one.loss <= losses[0] * 1.05) for one in listed)
