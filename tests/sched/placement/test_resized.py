"""Plans with engines of another size."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart.scenario.load import load_scenario
from rollart.sched.placement.resized import resized

PAPER = Path(__file__).resolve().parents[3] / "experiments/scenarios/paper-128.yaml"


@pytest.fixture
def job():
    return load_scenario(PAPER).job()


def test_each_pool_in_turn_with_engines_twice_and_half_the_size(job):
    found = list(resized(job.plan, job.cluster))
    cuts = [[(g.pool, g.engines, g.tensor_parallel) for g in plan.placement.engine_groups] for plan in found]
    assert cuts == [
        [("h800", 8, 8), ("h20", 8, 4)],
        [("h800", 32, 2), ("h20", 8, 4)],
        [("h800", 16, 4), ("h20", 4, 8)],
        [("h800", 16, 4), ("h20", 16, 2)],
    ]
    for plan in found:
        names = {group.name for group in plan.placement.engine_groups}
        assert all(set(groups) <= names for groups in plan.placement.affinity.values())
        assert plan.placement.trainer == job.plan.placement.trainer


def test_of_an_odd_number_one_stays_and_keeps_its_tasks(job):
    h800, h20 = job.plan.placement.engine_groups
    groups = (replace(h800, engines=3, tensor_parallel=2), h20)
    plan = replace(job.plan, placement=replace(job.plan.placement, engine_groups=groups))
    larger = next(resized(plan, job.cluster)).placement
    assert [(g.engines, g.tensor_parallel) for g in larger.engine_groups] == [(1, 4), (1, 2), (8, 4)]
    assert larger.affinity["WebShop"] == ("h800-as-tp4", "h800")


def test_no_engine_is_larger_than_a_node_or_smaller_than_a_device(job):
    h800, h20 = job.plan.placement.engine_groups
    groups = (replace(h800, engines=4, tensor_parallel=8), replace(h20, engines=1, tensor_parallel=1))
    plan = replace(job.plan, placement=replace(job.plan.placement, engine_groups=groups))
    found = [plan.placement.engine_groups[0] for plan in resized(plan, job.cluster)]
    assert [(group.engines, group.tensor_parallel) for group in found] == [(8, 4)]
