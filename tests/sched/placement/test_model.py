"""The program of one step: against brute force, each constraint where it binds, and what may never happen."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.plan import Role
from rollart.domain.planning import EngineRule, Range, Rules, TaskRule
from rollart.sched.placement.balance import balance
from rollart.sched.placement.model import RolloutModel, Room, parts
from tests.sched.placement.worlds import instance_of

STEP_S, WINDOW_S = 240.0, 239.0


@pytest.fixture(scope="module")
def duo():
    return instance_of("duo")


def most(instance, room, *, integer=True, step_s=STEP_S, window_s=WINDOW_S):
    found = RolloutModel(instance, step_s, window_s, integer=integer).most_batches(room)
    return 0.0 if found is None else found.value


def room(instance, h800=2, h20=4, **fields):
    return Room(free={"h800": h800, "h20": h20}, kinds=frozenset(range(len(instance.kinds))), **fields)


def of_pool(instance, pool):
    return frozenset(e for e, kind in enumerate(instance.kinds) if kind.pool == pool)


def ruled(instance, **rules):
    return replace(instance, rules=Rules(**rules))


def test_brute_force_over_engine_counts_finds_nothing_better(duo):
    """Every choice of engines in two devices of each pool, whatever batches they work at, stays within the bound."""
    here = room(duo, h800=2, h20=2)
    found = RolloutModel(duo, STEP_S, WINDOW_S, integer=True).most_batches(here)
    best = 0.0
    allowed = frozenset(itertools.product(range(2), range(len(duo.kinds))))
    counts = [range(2 // kind.devices + 1) for kind in duo.kinds]
    for engines in itertools.product(*counts):
        used = {"h800": 0, "h20": 0}
        for kind, count in zip(duo.kinds, engines, strict=True):
            used[kind.pool] += count * kind.devices
        if any(engines) and max(used.values()) <= 2:
            made = balance(duo, engines, allowed, STEP_S, WINDOW_S, integer=False)
            best = max(best, 0.0 if made is None else made.batches)
    assert found.value <= found.bound * (1 + 1e-9)
    assert best == pytest.approx(found.value, rel=2e-3)


def test_a_group_at_one_batch_does_not_beat_fractions_at_many(duo):
    engines = tuple(1 if kind.devices == 1 else 0 for kind in duo.kinds)
    allowed = frozenset(itertools.product(range(2), (e for e, count in enumerate(engines) if count)))
    whole, relaxed = (balance(duo, engines, allowed, STEP_S, WINDOW_S, integer=flag) for flag in (True, False))
    assert 0 < whole.batches <= relaxed.batches * (1 + 1e-9)
    assert sum(load.served.get(0, 0.0) for load in whole.loads) > 0
    assert all(0.0 <= load.busy <= 1.0 + 1e-6 for load in whole.loads)


@settings(max_examples=8, deadline=None)
@given(h800=st.integers(0, 4), h20=st.integers(0, 4), more=st.sampled_from(["h800", "h20"]))
def test_more_devices_are_never_worse(h800, h20, more):
    duo = instance_of("duo")
    wider = {"h800": h800, "h20": h20}
    wider[more] += 1
    less, greater = most(duo, room(duo, h800, h20), integer=False), most(duo, room(duo, **wider), integer=False)
    assert less <= greater * (1 + 1e-6)


def test_integers_stay_within_the_relaxation(duo):
    assert most(duo, room(duo)) <= most(duo, room(duo), integer=False) * (1 + 1e-6)


def test_a_longer_step_feeds_more(duo):
    rates = [most(duo, room(duo), step_s=s, window_s=s - 1, integer=False) for s in (60, 120, 240, 480)]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_no_device_no_batch(duo):
    assert most(duo, room(duo, 0, 0)) == 0.0


def test_kinds_that_may_not_be_used_are_not_used(duo):
    only = replace(room(duo), kinds=of_pool(duo, "h20"))
    found = RolloutModel(duo, STEP_S, WINDOW_S, integer=True).most_batches(only)
    assert {duo.kinds[e].pool for e, _ in found.engines} == {"h20"}
    assert found.value < most(duo, room(duo))


def test_the_room_of_a_kind_is_given_back(duo):
    """A model that was narrowed to one engine, or none, is as wide as before afterwards."""
    model = RolloutModel(duo, STEP_S, WINDOW_S, integer=True)
    before = model.most_batches(room(duo)).value
    model.most_batches(room(duo, 1, 0))
    model.most_batches(replace(room(duo), kinds=of_pool(duo, "h800")))
    assert model.most_batches(room(duo)).value == pytest.approx(before, rel=2e-3)


# One constraint family at a time (docs/planner.md)


def test_slots_bind(duo):
    few = ruled(duo, environment_slots=Range(least=0, most=2))
    assert 0.0 < most(few, room(few)) < 0.3 * most(duo, room(duo))


def test_quota_binds_where_the_policy_lets_little_be_under_way(duo):
    strict = replace(duo, composition=replace(duo.composition, ahead=0.01))
    assert most(strict, room(strict, 4, 4)) < most(duo, room(duo, 4, 4))


def test_barrier_keeps_slow_points_away(duo):
    """At a step as short as a typical trajectory, points at which most groups are late are of no use."""
    columns = duo.columns(20.0, 19.0)
    assert any(column.unfinished > duo.composition.ahead for column in columns)
    assert most(duo, room(duo, 4, 4), step_s=5.0, window_s=4.0) == 0.0


def test_environment_cores_bind(duo):
    hosts = replace(duo.job.cluster.environments, count=1, cores_per_host=0.01)
    poor = replace(duo, job=replace(duo.job, cluster=replace(duo.job.cluster, environments=hosts)))
    assert 0.0 < most(poor, room(poor)) < 0.5 * most(duo, room(duo))


def test_functions_bind(duo):
    demands = tuple(replace(demand, reward_s=1000.0) for demand in duo.demands)
    slow = replace(duo, demands=demands)
    # 100 functions at once, 1000 s each: 24 trajectories in a step of 240 s.
    assert most(slow, room(slow)) * sum(demand.starts for demand in demands) == pytest.approx(24.0, rel=0.02)


def test_nodes_bind():
    assert [parts(12, 8, part) for part in (1, 2, 4, 8, 16)] == [12, 6, 3, 1, 0]
    duo = instance_of("duo", "cluster.pools.h20={device: H20, count: 6, devices_per_node: 3}")
    pair = frozenset(e for e, kind in enumerate(duo.kinds) if (kind.pool, kind.devices) == ("h20", 2))
    found = RolloutModel(duo, STEP_S, WINDOW_S, integer=True).most_batches(Room(free={"h800": 0, "h20": 6}, kinds=pair))
    # Two nodes of three devices hold one engine of two each, not three together.
    assert sum(found.engines.values()) == pytest.approx(2)


def test_price_binds(duo):
    prices = {name: pool.price_per_hour for name, pool in duo.job.cluster.pools.items()}
    found = RolloutModel(duo, STEP_S, WINDOW_S, integer=True).most_batches(room(duo, price_per_hour=2 * prices["h20"]))
    spent = sum(duo.kinds[e].devices * prices[duo.kinds[e].pool] * n for (e, _), n in found.engines.items())
    assert spent <= 2 * prices["h20"] * (1 + 1e-6)
    assert found.value < most(duo, room(duo))


def test_the_cheapest_engines_that_feed_a_batch(duo):
    model = RolloutModel(duo, STEP_S, WINDOW_S, integer=True)
    found = model.least_price(room(duo, 4, 4))
    assert found.bound <= found.value * (1 + 1e-9)
    assert model.most_batches(room(duo, 4, 4, price_per_hour=found.value * 1.0001), at_least=1.0) is not None
    assert model.most_batches(room(duo, 4, 4, price_per_hour=found.value * 0.9), at_least=1.0) is None


def test_rules_on_engines_bind(duo):
    pinned = ruled(duo, engines=(EngineRule(pool="h20", tensor_parallel=1, engines=Range(least=3, most=3)),))
    found = RolloutModel(pinned, STEP_S, WINDOW_S, integer=True).most_batches(room(pinned))
    assert sum(n for (e, _), n in found.engines.items() if pinned.kinds[e].name == "h20-tp1") == pytest.approx(3)
    bounded = ruled(duo, engines=(EngineRule(pool="h20", devices=Range(least=0, most=1)),))
    found = RolloutModel(bounded, STEP_S, WINDOW_S, integer=True).most_batches(room(bounded))
    assert sum(duo.kinds[e].devices * n for (e, _), n in found.engines.items() if duo.kinds[e].pool == "h20") <= 1


def test_rules_on_shares_bind(duo):
    rule = TaskRule(task="WebShop", pool="h20", share=Range(least=0.25, most=0.25))
    shared = ruled(duo, tasks=(rule,))
    model = RolloutModel(shared, STEP_S, WINDOW_S, integer=True)
    found = model.most_batches(room(shared))
    served = {"h800": 0.0, "h20": 0.0}
    for k, work in found.work.items():
        column = model.columns[k]
        if column.task == 0:
            served[duo.kinds[column.kind].pool] += work * column.starts * column.trained
    assert served["h20"] / sum(served.values()) == pytest.approx(0.25, abs=1e-6)


def test_pairs_need_both_ends():
    pairs = instance_of("duo", "planner.disaggregate=true")
    decode = frozenset(e for e, kind in enumerate(pairs.kinds) if kind.role is Role.DECODE)
    prefill = frozenset(e for e, kind in enumerate(pairs.kinds) if kind.role is Role.PREFILL)
    free = {"h800": 2, "h20": 4}
    assert most(pairs, Room(free=free, kinds=decode), integer=False) == 0.0
    both = RolloutModel(pairs, STEP_S, WINDOW_S, integer=True).most_batches(Room(free=free, kinds=decode | prefill))
    assert both.value > 0
    assert {pairs.kinds[e].role for e, _ in both.engines} == {Role.DECODE, Role.PREFILL}


def test_links_bind_between_the_ends_of_a_pair():
    wide = instance_of("duo", "planner.disaggregate=true")
    narrow = instance_of(
        "duo", "planner.disaggregate=true", "cluster.default_link={bandwidth_gbit_per_s: 0.01, latency_us: 50}"
    )
    across = frozenset(
        e
        for e, kind in enumerate(wide.kinds)
        if (kind.pool, kind.role) in (("h800", Role.PREFILL), ("h20", Role.DECODE))
    )
    rooms = Room(free={"h800": 2, "h20": 4}, kinds=across)
    assert 0.0 < most(narrow, rooms, integer=False) < 0.5 * most(wide, rooms, integer=False)
