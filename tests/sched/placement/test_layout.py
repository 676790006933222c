"""From groups of the model to a plan's names, affinity, shares and slots; and when two plans differ."""

from dataclasses import replace

import pytest

from rollart.domain.plan import TrainerPlacement
from rollart.domain.planning import Range, Rules
from rollart.sched.placement.difference import differs
from rollart.sched.placement.groups import Group
from rollart.sched.placement.layout import plan_of
from rollart.sched.placement.report import Candidate, Prediction
from rollart.sched.placement.trainers import TrainerOption
from tests.sched.placement.worlds import instance_of

TRAINER = TrainerOption(placement=TrainerPlacement(pool="h800", devices=2, tensor_parallel=2), step_s=10.0)


@pytest.fixture(scope="module")
def duo():
    return instance_of("duo")


def named(duo, name):
    return next(e for e, kind in enumerate(duo.kinds) if kind.name == name)


def two_groups(duo, running=((30.0, 0.0), (10.0, 20.0))):
    kind = named(duo, "h20-tp1")
    return [
        Group(kind=kind, engines=count, running=dict(enumerate(each)), served={})
        for count, each in zip((3, 1), running, strict=True)
    ]


def test_groups_of_one_kind_are_numbered_and_tasks_know_their_parts(duo):
    placement = plan_of(duo, TRAINER, two_groups(duo)).placement
    assert [(group.name, group.engines) for group in placement.engine_groups] == [("h20-tp1-1", 3), ("h20-tp1-2", 1)]
    assert placement.affinity == {"WebShop": ("h20-tp1-1", "h20-tp1-2"), "GEM-math": ("h20-tp1-2",)}
    assert placement.shares == {"WebShop": {"h20-tp1-1": 0.75, "h20-tp1-2": 0.25}}
    assert placement.trainer == TRAINER.placement


def test_a_sliver_of_a_task_is_left_out(duo):
    placement = plan_of(duo, TRAINER, two_groups(duo, ((100.0, 0.0), (1.0, 20.0)))).placement
    assert placement.affinity["WebShop"] == ("h20-tp1-1",)
    assert placement.shares == {}


def test_slots_are_cut_only_where_caches_would_overflow(duo):
    assert plan_of(duo, TRAINER, two_groups(duo)).placement.environment_slots == 256
    longer = tuple(replace(demand, held_tokens=1e6) for demand in duo.demands)
    # 60 trajectories under way, and five in a hundred to spare.
    crowded = replace(duo, demands=longer)
    assert plan_of(crowded, TRAINER, two_groups(duo)).placement.environment_slots == 63
    pinned = replace(crowded, rules=Rules(environment_slots=Range(least=100, most=100)))
    assert plan_of(pinned, TRAINER, two_groups(duo)).placement.environment_slots == 100


def candidate(plan, **shares):
    predicted = Prediction(
        step_s=1.0,
        cost_per_step=1.0,
        rollout_s=1.0,
        training_s=1.0,
        update_s=0.0,
        bottleneck="rollout",
        pools={},
        shares=shares,
    )
    return Candidate(plan=plan, predicted=predicted, value=1.0)


def test_what_makes_another_plan(duo):
    plan = plan_of(duo, TRAINER, two_groups(duo))
    same = candidate(plan)
    assert not differs(same, same)
    more = TrainerOption(placement=replace(TRAINER.placement, devices=4), step_s=5.0)
    assert differs(same, candidate(plan_of(duo, more, two_groups(duo))))
    wide = [Group(kind=named(duo, "h20-tp4"), engines=1, running={0: 1.0, 1: 1.0}, served={})]
    assert differs(same, candidate(plan_of(duo, TRAINER, wide)))
    # Fewer groups on the same engines are no other plan.
    joined = [Group(kind=named(duo, "h20-tp1"), engines=4, running={0: 1.0, 1: 1.0}, served={})]
    assert not differs(same, candidate(plan_of(duo, TRAINER, joined)))


def test_a_task_that_is_generated_elsewhere_makes_another_plan(duo):
    groups = [
        Group(kind=named(duo, name), engines=2, running={0: 1.0, 1: 1.0}, served={}) for name in ("h20-tp1", "h800-tp1")
    ]
    plan = plan_of(duo, TRAINER, groups)
    here, there = (candidate(plan, WebShop={name: 1.0}) for name in ("h20-tp1", "h800-tp1"))
    assert differs(here, there)
