"""More trajectories than the prefix caches hold."""

from dataclasses import replace

import pytest

from rollart.sched.placement.crowding import crowded, without_caches
from tests.sched.placement.worlds import instance_of


@pytest.fixture
def one_group():
    """The small scenario with engines of one kind, and its plan."""
    duo = instance_of("duo")
    kind, plan = duo.kinds[0], duo.job.plan
    placement = replace(plan.placement, engine_groups=(replace(kind.group, name="only", engines=2),))
    return replace(duo, kinds=(kind,)), replace(plan, placement=placement)


def _held(instance, factor):
    """Contexts so large that all that is admitted fills the two engines' caches by a factor."""
    under_way = instance.composition.under_way
    starts = sum(demand.starts for demand in instance.demands)
    each = 2 * instance.kinds[0].costs.kv_capacity_tokens * factor / (starts * under_way)
    return replace(instance, demands=tuple(replace(demand, held_tokens=each) for demand in instance.demands))


@pytest.mark.parametrize(("factor", "expected"), [(0.5, False), (1.05, False), (1.2, True)])
def test_what_is_admitted_may_outgrow_the_caches(one_group, factor, expected):
    instance, plan = one_group
    assert crowded(_held(instance, factor), plan) is expected


def test_slots_keep_trajectories_out_and_drains_know_their_load(one_group):
    instance, plan = one_group
    few = replace(plan, placement=replace(plan.placement, environment_slots=8))
    assert not crowded(_held(instance, 2.0), few)
    drained = replace(instance, composition=replace(instance.composition, barrier=True))
    assert not crowded(_held(drained, 2.0), plan)


def test_engines_without_caches_are_otherwise_the_same(one_group):
    _, plan = one_group
    (group,) = plan.placement.engine_groups
    assert group.prefix_caching
    assert without_caches(plan).placement.engine_groups == (replace(group, prefix_caching=False),)
