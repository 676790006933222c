"""More trajectories than the prefix caches hold."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollart.sched.placement.crowding import crowded, kept_part, pressures
from tests.sched.placement.worlds import instance_of


@pytest.fixture
def one_group():
    """The small scenario with engines of one kind, and its plan."""
    duo = instance_of("duo")
    kind, plan = duo.kinds[0], duo.job.plan
    placement = replace(plan.placement, engine_groups=(replace(kind.group, name="only", engines=2),), affinity={})
    return replace(duo, kinds=(kind,)), replace(plan, placement=placement)


def _held(instance, factor):
    """Contexts so large that all that is admitted fills the caches of two engines by a factor."""
    under_way = instance.composition.under_way
    starts = sum(demand.starts for demand in instance.demands)
    each = 2 * instance.kinds[0].costs.kv_capacity_tokens * factor / (starts * under_way)
    return replace(instance, demands=tuple(replace(demand, held_tokens=each) for demand in instance.demands))


@pytest.mark.parametrize(("factor", "kept"), [(0.5, 1.0), (1.1, 1.0), (1.55, 0.5), (2.0, 0.0), (9.0, 0.0)])
def test_what_is_admitted_may_outgrow_the_caches(one_group, factor, kept):
    instance, plan = one_group
    (kind,) = crowded(_held(instance, factor), plan).kinds
    assert kind.kept == pytest.approx(kept)


def test_a_crowded_cache_costs_the_more_the_less_it_keeps(one_group):
    instance, plan = one_group
    rates = {}
    for factor in (0.5, 1.3, 1.7, 2.0):
        held = crowded(_held(instance, factor), plan)
        rates[factor] = next(point.rate for point in held.points if (point.task, point.batch) == (0, 8))
    assert rates[1.3] > rates[1.7] > rates[2.0]
    bare = replace(instance.kinds[0].group, prefix_caching=False)
    without = next(
        point.rate
        for point in crowded(
            replace(_held(instance, 2.0), kinds=(replace(instance.kinds[0], group=bare),)), plan
        ).points
        if (point.task, point.batch) == (0, 8)
    )
    assert rates[2.0] == without


def test_slots_keep_trajectories_out_and_drains_know_their_load(one_group):
    instance, plan = one_group
    few = replace(plan, placement=replace(plan.placement, environment_slots=8))
    held = _held(instance, 2.0)
    assert crowded(held, few) is held
    drained = replace(held, composition=replace(instance.composition, barrier=True))
    assert crowded(drained, plan) is drained


def test_a_task_that_can_go_nowhere_else_fills_its_group_beside_an_empty_one(one_group):
    instance, plan = one_group
    (group,) = plan.placement.engine_groups
    first, second = instance.demands
    large = replace(first, held_tokens=2 * _held(instance, 2.2).demands[0].held_tokens)
    two = (group, replace(group, name="other", engines=20))
    for affinity, shares, kept in (
        ({first.task.name: ("only",), second.task.name: ("other",)}, {}, 0.0),
        ({first.task.name: ("only", "other"), second.task.name: ("other",)}, {}, 1.0),
        ({}, {first.task.name: {"only": 1.0}, second.task.name: {"other": 1.0}}, 0.0),
        ({}, {first.task.name: {"only": 0.1, "other": 0.9}, second.task.name: {"other": 1.0}}, 1.0),
    ):
        placement = replace(plan.placement, engine_groups=two, affinity=affinity, shares=shares)
        data = replace(instance, kinds=instance.kinds * 2, demands=(large, replace(second, held_tokens=1.0)))
        found = crowded(data, replace(plan, placement=placement))
        assert [kind.kept for kind in found.kinds] == [kept, 1.0]


_SETS = st.dictionaries(st.frozensets(st.integers(0, 3), min_size=1), st.floats(0.1, 100.0), min_size=1, max_size=6)
_ROOMS = st.tuples(*[st.floats(0.5, 50.0)] * 4)


@given(_SETS, _ROOMS)
def test_pressures_are_those_of_the_most_even_division(contexts, rooms):
    found = pressures(contexts, rooms)
    assert sum(p * room for p, room in zip(found, rooms, strict=True)) == pytest.approx(sum(contexts.values()))
    for groups, tokens in contexts.items():
        # What may go to several groups is in the least full of them; and it is at least as full as it alone makes them.
        assert max(found[group] for group in groups) >= tokens / sum(rooms[group] for group in groups) * (1 - 1e-9)
    whole = max(
        sum(tokens for own, tokens in contexts.items() if own <= union) / sum(rooms[group] for group in union)
        for union in _subsets()
    )
    assert max(found) == pytest.approx(whole)


def _subsets():
    return [frozenset(g for g in range(4) if mask >> g & 1) for mask in range(1, 16)]


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_more_pressure_never_keeps_more(one, other):
    low, high = sorted((one, other))
    assert 1.0 >= kept_part(low) >= kept_part(high) >= 0.0
