"""Operating points: Little's law, the cliff of the prefix cache, pairs, and what draining engines do."""

from dataclasses import replace
from itertools import pairwise

import pytest

from rollart.domain.plan import KvReturn, Role
from rollart.sched.placement.draining import drains
from rollart.sched.placement.points import iteration_s, new_tokens, points
from tests.sched.placement.worlds import instance_of


@pytest.fixture(scope="module")
def duo():
    return instance_of("duo")


def test_littles_law_holds_at_every_point(duo):
    for point in duo.points:
        demand = duo.demands[point.task]
        in_environment = point.concurrency - point.batch
        assert in_environment == pytest.approx(point.rate * demand.environment_s)
        # A request advances by a token every pace: batch / pace tokens a second, rate * output of them.
        assert point.batch / point.pace_s == pytest.approx(point.rate * demand.output_tokens)


def test_decoding_alone_bounds_the_rate(duo):
    for point in duo.points:
        kind, demand = duo.kinds[point.kind], duo.demands[point.task]
        decode_s = iteration_s(kind.costs, point.batch, point.batch * demand.context_tokens)
        assert point.rate <= point.batch / (demand.output_tokens * decode_s) * (1 + 1e-9)


def test_contexts_fit_where_the_cache_is_said_to_hold_them(duo):
    for point in duo.points:
        kind, demand = duo.kinds[point.kind], duo.demands[point.task]
        assert point.batch * demand.context_tokens <= kind.costs.kv_capacity_tokens
        if point.cached:
            assert point.concurrency * demand.held_tokens <= kind.costs.kv_capacity_tokens


def test_an_environment_that_takes_long_pushes_histories_out_of_the_cache(duo):
    """The same batch with more idle contexts beside it: the cliff."""
    many_turns = max(range(2), key=lambda d: duo.demands[d].turns)
    calm = [replace(duo.demands[many_turns], environment_s=1.0)]
    slow = [replace(duo.demands[many_turns], environment_s=1e5)]
    before = {(p.kind, p.batch): p for p in points(list(duo.kinds), calm, KvReturn.RECOMPUTE)}
    after = {(p.kind, p.batch): p for p in points(list(duo.kinds), slow, KvReturn.RECOMPUTE)}
    fell = [key for key in before if before[key].cached and not after[key].cached]
    assert fell
    assert all(after[key].rate < before[key].rate for key in fell)


def test_members_share_their_prompt_where_they_meet(duo):
    kind, demand = duo.kinds[0], duo.demands[0]
    one, many = (new_tokens(replace(kind, spread=engines), demand) for engines in (1, 10_000))
    assert demand.started == 5
    assert one == pytest.approx(demand.new_tokens - demand.prompt_tokens * 4 / 5)
    assert many == pytest.approx(demand.new_tokens, rel=1e-3)


def test_a_pair_keeps_its_prefill_engines_busy_for_what_it_starts():
    pairs = instance_of("duo", "planner.disaggregate=true")
    found = [point for point in pairs.points if point.prefill_kind is not None]
    assert found
    for point in found:
        assert pairs.kinds[point.kind].role is Role.DECODE
        assert pairs.kinds[point.prefill_kind].role is Role.PREFILL
        demand, kind = pairs.demands[point.task], pairs.kinds[point.kind]
        assert point.moved_bytes_per_s == pytest.approx(point.rate * demand.new_tokens * kind.costs.kv_bytes_per_token)
        assert point.prefill_use > 0


def test_returned_tokens_are_moved_and_not_computed_again():
    pairs = instance_of("duo", "planner.disaggregate=true")
    there, back = (
        next(p for p in points(list(pairs.kinds), list(pairs.demands), mode) if p.prefill_kind is not None)
        for mode in (KvReturn.RECOMPUTE, KvReturn.TRANSFER)
    )
    assert back.prefill_use < there.prefill_use
    assert back.moved_bytes_per_s > there.moved_bytes_per_s


def test_a_larger_load_takes_longer_and_its_last_is_the_longest(duo):
    made = list(drains(list(duo.kinds[:1]), list(duo.demands)))
    for task, demand in enumerate(duo.demands):
        loads = [drain for drain in made if drain.task == task]
        assert all(less.makespan_s <= more.makespan_s * 1.02 for less, more in pairwise(loads))
        alone = loads[0]
        assert alone.load == 1
        costs = duo.kinds[0].costs
        pace_s = iteration_s(costs, 1, demand.context_tokens)
        assert alone.makespan_s >= pace_s * float(sorted(demand.group_output_tokens)[len(demand.lengths) // 100])
