"""One engine, by hand."""

from math import inf

import pytest

from rollart.costs.interface import LinearPiece
from rollart.domain.errors import CapacityError, InputError, InvariantError
from rollart.serving import Engine, EngineConfig, Request, Role


class FlatCosts:
    """Every iteration takes `base_s` plus `per_token_s` per resident token; chunks cost nothing and are kept."""

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def __init__(self, base_s=1.0, per_token_s=0.0):
        self.base_s, self.per_token_s = base_s, per_token_s
        self.mixed = []

    def decode(self, batch, context_tokens):  # noqa: ARG002
        return LinearPiece(self.base_s, self.per_token_s, inf)

    def mixed_s(self, batch, context_tokens, chunks):
        self.mixed.append((batch, context_tokens, list(chunks)))
        return self.base_s


def engine_of(costs=None, **changes):
    settings = {"max_num_seqs": 8, "max_num_batched_tokens": 1000, "kv_blocks": 1000, "block_size": 4}
    return Engine(EngineConfig(**(settings | changes)), costs or FlatCosts())


def request(key, context=5, output=3, **more):
    return Request(request_id=key, chain=key, context_tokens=context, output_tokens=output, **more)


def run(engine, until_s=inf):
    """Completions by request, and the number of wake-ups."""
    done, wakes = {}, 0
    while engine.next_wake <= until_s and engine.next_wake < inf:
        wakes += 1
        done |= {found.request_id: found for found in engine.advance(engine.next_wake)}
    return done, wakes


def test_one_request_alone():
    engine = engine_of()
    engine.submit(request(1), 10.0)
    done, _ = run(engine)
    assert done[1] == (1, 13.0, 3, 0, 0.0, 1.0, 1.0, 2.0, 0, 0, None)
    assert (engine.running, engine.waiting, engine.next_wake) == (0, 0, inf)


def test_advance_to_infinity_ends():
    engine = engine_of()
    assert engine.advance(inf) == []
    engine.submit(request(1), 10.0)
    assert [found.time_s for found in engine.advance(inf)] == [13.0]


def test_decode_time_grows_with_the_context():
    engine = engine_of(FlatCosts(1.0, 0.5))
    engine.submit(request(1, context=5, output=4), 0.0)
    # The prompt takes 1; then 6, 7 and 8 resident tokens.
    assert run(engine)[0][1].time_s == 1.0 + 4.0 + 4.5 + 5.0


def test_wake_ups_do_not_grow_with_the_output():
    engine = engine_of(kv_blocks=100_000)
    engine.submit(request(1, output=100_000), 0.0)
    done, wakes = run(engine)
    assert (done[1].time_s, wakes) == (100_000.0, 3)


@pytest.mark.parametrize(("lag", "scheduled_s"), [(0, 3.0), (1, 4.0)])
def test_an_arrival_joins_at_the_next_composition(lag, scheduled_s):
    engine = engine_of(scheduling_lag=lag)
    engine.submit(request(1, output=10), 0.0)
    run(engine, 2.5)
    engine.submit(request(2), 2.5)
    done, _ = run(engine)
    assert done[2].queue_s == scheduled_s - 2.5
    assert done[2].time_s == scheduled_s + 3.0
    assert done[1].time_s == 10.0


@pytest.mark.parametrize(("lag", "scheduled_s"), [(0, 2.0), (1, 3.0)])
def test_a_finished_request_frees_its_slot(lag, scheduled_s):
    engine = engine_of(scheduling_lag=lag, max_num_seqs=2)
    for key, output in ((1, 2), (2, 10), (3, 5)):
        engine.submit(request(key, output=output), 0.0)
    assert run(engine)[0][3].queue_s == scheduled_s


def test_an_empty_pipeline_drains():
    """Nothing runs beside the finished request, so its successor need not wait for the lag."""
    engine = engine_of(scheduling_lag=1, max_num_seqs=1)
    engine.submit(request(1, output=2), 0.0)
    engine.submit(request(2, output=2), 0.0)
    assert run(engine)[0][2].queue_s == 2.0


def test_prompts_are_cut_to_the_budget():
    costs = FlatCosts()
    engine = engine_of(costs, max_num_batched_tokens=8)
    engine.submit(request(1, context=4, output=9), 0.0)
    engine.submit(request(2, context=13), 0.0)
    done, _ = run(engine)
    # 4 + 4 in the first iteration; then one decode and 7 tokens of prompt; then the last two.
    assert costs.mixed == [(0, 0, [(4, 0), (4, 0)]), (1, 5, [(7, 4)]), (1, 6, [(2, 11)])]
    assert done[2].first_token_s == 3.0


def test_next_turn_computes_only_what_is_new():
    costs = FlatCosts()
    engine = engine_of(costs)
    engine.submit(request(1, context=9, output=4), 0.0)
    run(engine)
    engine.submit(Request(request_id=2, chain=1, context_tokens=20, reusable_tokens=13, output_tokens=1), 10.0)
    done, _ = run(engine)
    # The last of the 13 tokens has no KV: 12 do, three whole blocks.
    assert done[2].cached_tokens == 12
    assert costs.mixed[-1] == (0, 0, [(8, 12)])
    assert engine.usage(20.0).lost_history_tokens == 0


def test_a_group_computes_its_prompt_once_within_one_iteration():
    costs = FlatCosts()
    engine = engine_of(costs)
    for key in (1, 2, 3):
        engine.submit(request(key, context=17, group=7, shared_tokens=17), 0.0)
    run(engine)
    assert costs.mixed == [(0, 0, [(17, 0), (1, 16), (1, 16)])]


def test_the_request_admitted_last_is_preempted_and_recomputes():
    costs = FlatCosts()
    engine = engine_of(costs, kv_blocks=4, prefix_caching=False)
    engine.submit(request(1, context=6, output=8), 0.0)
    engine.submit(request(2, context=6, output=8), 0.0)
    done, _ = run(engine)
    # Both hold two blocks until they have KV for eight tokens, after three iterations: prompt, 7th, 8th.
    # The second one then has nine known tokens, waits until the first one ends at 8, and has five left to make.
    assert done[1][:3] == (1, 8.0, 8)
    assert costs.mixed[-1] == (0, 0, [(9, 0)])
    assert (done[2].time_s, done[2].preemptions, done[2].recomputed_tokens) == (13.0, 1, 8)
    usage = engine.usage(13.0)
    assert (usage.preemptions, usage.preempted_tokens, usage.prefill_tokens) == (1, 8, 21)


def test_abort_tells_the_tokens_made_and_its_row_leaves_later():
    costs = FlatCosts()
    engine = engine_of(costs)
    engine.submit(request(1, output=50), 0.0)
    engine.submit(request(2, output=50), 0.0)
    run(engine, 3.5)
    assert engine.abort(1, 3.5) == 3
    assert engine.running == 2
    done, _ = run(engine)
    assert list(done) == [2]
    # Two rows in the fourth iteration, too: 2 prompts, 2 * 3 and 46 decode tokens.
    assert engine.usage(99.0).decode_tokens == 52


def test_abort_of_a_waiting_request():
    engine = engine_of(max_num_seqs=1)
    engine.submit(request(1), 0.0)
    engine.submit(request(2), 0.0)
    run(engine, 0.5)
    assert engine.abort(2, 0.5) == 0
    assert list(run(engine)[0]) == [1]


def test_an_id_may_return_while_its_aborted_row_is_still_there():
    engine = engine_of()
    engine.submit(request(1, output=50), 0.0)
    run(engine, 3.5)
    assert engine.abort(1, 3.5) == 3
    engine.submit(request(1, context=8, output=2), 3.5)
    assert run(engine)[0][1].time_s == 6.0


def test_suspend_ends_the_running_iteration():
    engine = engine_of()
    engine.submit(request(1, output=10), 0.0)
    run(engine, 2.5)
    assert engine.suspend(2.5) == 3.0
    run(engine)
    assert (engine.next_wake, engine.running) == (inf, 1)
    engine.submit(request(2, output=1), 4.0)
    engine.resume(5.0)
    done, _ = run(engine)
    assert (done[1].time_s, done[2].time_s) == (12.0, 6.0)


def test_suspend_of_a_resting_engine_is_immediate():
    engine = engine_of()
    assert engine.suspend(2.0) == 2.0
    engine.submit(request(1), 3.0)
    assert engine.next_wake == inf
    engine.resume(4.0)
    assert run(engine)[0][1].time_s == 7.0


def test_new_weights_cost_the_kv_of_all_that_runs():
    costs = FlatCosts()
    engine = engine_of(costs)
    engine.submit(request(1, context=5, output=10), 0.0)
    run(engine, 4.5)
    engine.update_weights(4.5)
    done, _ = run(engine)
    # Five tokens made at 5: ten known, nine of them had KV; the recomputation makes the sixth.
    assert costs.mixed[-1] == (0, 0, [(10, 0)])
    assert done[1].recomputed_tokens == 9
    assert done[1].time_s == 10.0
    usage = engine.usage(10.0)
    assert (usage.updated_tokens, usage.preemptions) == (9, 0)


def test_new_weights_lose_the_prefix_cache_of_those_that_wait_for_their_environment():
    engine = engine_of()
    engine.submit(request(1, context=9, output=4), 0.0)
    run(engine)
    engine.update_weights(5.0)
    engine.submit(Request(request_id=2, chain=1, context_tokens=20, reusable_tokens=13, output_tokens=1), 10.0)
    assert run(engine)[0][2].cached_tokens == 0
    assert engine.usage(20.0).lost_history_tokens == 12


def test_new_weights_void_kv_on_its_way():
    costs = FlatCosts()
    engine = engine_of(costs)
    engine.suspend(0.0)
    engine.submit(request(1, context=9, output=3, role=Role.DECODE), 0.0)
    engine.update_weights(1.0)
    engine.resume(2.0)
    done, _ = run(engine)
    assert costs.mixed == [(0, 0, [(9, 0)])]
    assert (done[1].time_s, done[1].recomputed_tokens) == (5.0, 8)
    assert engine.usage(5.0).updated_tokens == 8


def test_kept_kv_survives_an_update():
    costs = FlatCosts()
    engine = engine_of(costs, keep_kv_on_update=True)
    engine.submit(request(1, output=10), 0.0)
    run(engine, 4.5)
    engine.update_weights(4.5)
    assert run(engine)[0][1][:2] == (1, 10.0)
    assert len(costs.mixed) == 1


def test_kill_reports_the_tokens_of_all():
    engine = engine_of(max_num_seqs=1)
    engine.submit(request(1, output=50), 0.0)
    engine.submit(request(2), 0.0)
    run(engine, 3.5)
    assert engine.kill(3.5) == [(1, 3), (2, 0)]
    assert (engine.next_wake, engine.running, engine.waiting) == (inf, 0, 0)
    assert engine.usage(4.0).busy_s == 3.5
    engine.submit(request(1), 5.0)
    assert run(engine)[0][1].time_s == 8.0


def test_prefill_role_ends_with_its_first_token():
    engine = engine_of()
    engine.submit(request(1, context=9, output=30, role=Role.PREFILL), 0.0)
    done, _ = run(engine)
    assert done[1] == (1, 1.0, 1, 0, 0.0, 1.0, 1.0, 0.0, 0, 0, None)


def test_decode_role_needs_blocks_but_no_prefill():
    costs = FlatCosts()
    engine = engine_of(costs)
    engine.submit(request(1, context=9, output=3, role=Role.DECODE), 0.0)
    engine.advance(0.0)
    assert engine.usage(0.0).kv_used_blocks == 3
    done, _ = run(engine)
    assert costs.mixed == []
    assert done[1] == (1, 3.0, 3, 0, 0.0, 1.0, 0.0, 3.0, 0, 0, None)


def test_usage_within_a_long_step():
    engine = engine_of()
    engine.submit(request(1, context=4, output=100), 0.0)
    run(engine, 1.0)
    usage = engine.usage(10.5)
    assert (usage.busy_s, usage.iterations, usage.decode_tokens, usage.prefill_tokens) == (10.5, 10, 9, 4)
    # Four prompt tokens and the nine that followed have KV, and the next one has its place: 14 tokens.
    assert usage.kv_used_blocks == 4
    # One block for the first second, then from two to four: exact where occupancy grows evenly.
    assert usage.kv_block_s == pytest.approx(1.0 + 9.5 * 3.0)


def test_what_cannot_fit_is_refused_with_the_numbers():
    engine = engine_of(kv_blocks=4)
    engine.submit(request(1, context=10, output=7), 0.0)
    with pytest.raises(CapacityError, match=r"KV of 17 tokens \(context 10 \+ output 8 - 1\).* holds 16"):
        engine.submit(request(2, context=10, output=8), 0.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"context": 0},
        {"output": 0},
        {"shared_tokens": 6},
        {"reusable_tokens": -1},
    ],
)
def test_senseless_requests_are_refused(bad):
    with pytest.raises(InvariantError, match="request 1 has"):
        engine_of().submit(request(1, **bad), 0.0)


def test_an_id_in_use_is_refused():
    engine = engine_of()
    engine.submit(request(1), 0.0)
    with pytest.raises(InvariantError, match="id 1 is in use"):
        engine.submit(request(1), 0.0)


def test_a_driver_that_oversleeps_is_told():
    engine = engine_of()
    engine.submit(request(1), 0.0)
    with pytest.raises(InvariantError, match=r"due at 0\.0 s"):
        engine.submit(request(2), 1.0)


def test_abort_of_a_stranger_is_refused():
    with pytest.raises(InvariantError, match="request 9"):
        engine_of().abort(9, 0.0)


@pytest.mark.parametrize(
    "bad", [{"kv_blocks": 0}, {"max_num_batched_tokens": 7}, {"scheduling_lag": 2}, {"max_num_seqs": 0}]
)
def test_contradictory_limits_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        engine_of(**bad)
