"""Plans on a pool less."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart.domain.plan import Role
from rollart.scenario.load import load_scenario
from rollart.sched.placement.narrowed import narrowed

PAPER = Path(__file__).resolve().parents[3] / "experiments/scenarios/paper-128.yaml"


@pytest.fixture
def plan():
    return load_scenario(PAPER).job().plan


def test_each_rollout_pool_is_left_out_in_turn_and_its_tasks_go_elsewhere(plan):
    found = [one.placement for one in narrowed(plan)]
    assert [[group.pool for group in one.engine_groups] for one in found] == [["h20"], ["h800"]]
    assert plan.placement.affinity["WebShop"] == ("h800",)
    assert "WebShop" not in found[0].affinity
    assert found[1].affinity["WebShop"] == ("h800",)
    assert {one.trainer for one in found} == {plan.placement.trainer}


def test_of_one_pool_nothing_can_be_left_out(plan):
    (only, *_) = narrowed(plan)
    assert list(narrowed(only)) == []


def test_judges_stay_and_do_not_count_as_rollout(plan):
    h800, h20 = plan.placement.engine_groups
    judge = replace(h20, name="judge", role=Role.JUDGE)
    found = list(narrowed(replace(plan, placement=replace(plan.placement, engine_groups=(h800, h20, judge)))))
    assert [[group.name for group in one.placement.engine_groups] for one in found] == [
        [h20.name, "judge"],
        [h800.name, "judge"],
    ]


def test_prefill_engines_alone_are_no_rollout(plan):
    h800, h20 = plan.placement.engine_groups
    pair = (replace(h800, role=Role.DECODE), replace(h20, role=Role.PREFILL))
    placement = replace(plan.placement, engine_groups=pair, affinity={})
    found = list(narrowed(replace(plan, placement=placement)))
    assert all(any(group.role is Role.DECODE for group in one.placement.engine_groups) for one in found)
