"""The grid of plans."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rollart.domain.errors import CapacityError
from rollart.domain.plan import EngineGroup, TrainerPlacement
from rollart.scenario.load import load_scenario
from rollart.sched.placement.grid import PlanGrid
from rollart.sched.placement.ground import ground_of

PAPER = Path(__file__).resolve().parents[3] / "experiments/scenarios/paper-128.yaml"


@pytest.fixture(scope="module")
def scenario():
    return load_scenario(PAPER)


@pytest.fixture(scope="module")
def tiny(scenario):
    """Four devices of one kind and two of another, two tasks."""
    job = scenario.job()
    pools = job.cluster.pools
    pools = {"h800": replace(pools["h800"], count=4), "h20": replace(pools["h20"], count=2)}
    job = replace(job, cluster=replace(job.cluster, pools=pools), tasks=job.tasks[:2])
    trainers = (TrainerPlacement(pool="h800", devices=2), TrainerPlacement(pool="h800", devices=4))
    engines = tuple(
        EngineGroup(name=f"{pool}-tp{size}", pool=pool, engines=1, tensor_parallel=size)
        for pool, size in (("h800", 1), ("h800", 2), ("h20", 2))
    )
    return PlanGrid(job=job, trainers=trainers, engines=engines)


def test_every_plan_is_there_once(tiny):
    plans = list(tiny.plans())
    # Beside 2 training devices: h800 idle, TP 1 or TP 2, h20 idle or TP 2; beside 4: h20 alone. A single group leaves
    # each task one choice, two groups leave it three.
    assert len(plans) == (1 + 1 + 1 + 2 * 3**2) + 1
    assert len({repr(plan) for plan in plans}) == len(plans)


def test_engines_fill_what_the_trainer_leaves(tiny):
    for plan in tiny.plans():
        for group in plan.placement.engine_groups:
            trainer = plan.placement.trainer
            free = tiny.job.cluster.pools[group.pool].count - trainer.devices * (group.pool == trainer.pool)
            assert group.devices == free


def test_a_drawn_plan_is_one_of_them(tiny):
    plans = {repr(plan) for plan in tiny.plans()}
    generator = np.random.default_rng(0)
    drawn = {repr(tiny.drawn(generator)) for _ in range(200)}
    assert drawn <= plans
    assert len(drawn) > len(plans) / 2


def test_trainers_that_leave_no_room_are_not_in_the_grid(scenario):
    job = scenario.job()
    alone = replace(job, cluster=replace(job.cluster, pools={"h800": job.cluster.pools["h800"]}))
    ground = ground_of(alone, scenario.workload())
    assert max(option.placement.devices for option in ground.trainers) == 96
    assert max(trainer.devices for trainer in ground.grid.trainers) == 88


def test_a_model_that_fits_nowhere_is_refused(scenario):
    job = scenario.job()
    pool = job.cluster.pools["h20"]
    small = replace(pool, device=replace(pool.device, memory_bytes=8e9))
    with pytest.raises(CapacityError, match="no engine for Qwen3-32B fits any pool"):
        ground_of(replace(job, cluster=replace(job.cluster, pools={"h20": small})), scenario.workload())
