"""Blocks and prefix cache, by hand."""

from rollart.serving import Request
from rollart.serving.kvcache import KVCache

BLOCK = 4


def request(context, *, chain=1, group=0, shared=0, reusable=0):
    made = Request(
        request_id=0,
        chain=chain,
        group=group,
        shared_tokens=shared,
        reusable_tokens=reusable,
        context_tokens=context,
        output_tokens=1,
    )
    made.shared_blocks = (shared - 1) // BLOCK if shared else 0
    return made


def computed_and_released(kv, *requests):
    for one in requests:
        assert kv.admit(one, 1000) == one.context_tokens - one.computed_tokens
        kv.release(one, one.context_tokens)


def test_whole_blocks_stay_idle_and_the_rest_is_free():
    kv = KVCache(10, BLOCK, True)
    first = request(10)
    assert kv.admit(first, 1000) == 10
    assert (kv.free, kv.idle, kv.used) == (7, 0, 3)
    kv.release(first, 10)
    assert (kv.free, kv.idle, kv.used) == (8, 2, 0)


def test_next_turn_finds_its_history():
    kv = KVCache(10, BLOCK, True)
    computed_and_released(kv, request(10))
    second = request(14, reusable=10)
    assert kv.admit(second, 1000) == 6
    assert second.computed_tokens == 8
    assert (kv.free, kv.idle, kv.used) == (6, 0, 4)


def test_compaction_finds_only_what_is_identical_and_loses_the_rest():
    kv = KVCache(10, BLOCK, True)
    computed_and_released(kv, request(16))
    compacted = request(9, reusable=6)
    assert kv.admit(compacted, 1000) == 5
    assert compacted.computed_tokens == 4
    kv.release(compacted, 9)
    # Two blocks of its own, and three of the old history that nothing can find any more.
    assert (kv.free, kv.idle) == (5, 5)
    again = request(16, reusable=16)
    assert kv.admit(again, 1000) == 8


def test_last_token_is_always_computed():
    kv = KVCache(10, BLOCK, True)
    computed_and_released(kv, request(8))
    again = request(8, reusable=8)
    assert kv.admit(again, 1000) == 4


def test_group_shares_its_prompt_while_it_runs():
    kv = KVCache(10, BLOCK, True)
    first, second = request(11, chain=1, shared=9), request(9, chain=2, shared=9)
    assert kv.admit(first, 1000) == 11
    assert kv.admit(second, 1000) == 1
    assert kv.used == 4
    kv.release(first, 11)
    # The prompt is still held by the second member.
    assert (kv.free, kv.idle, kv.used) == (7, 0, 3)
    kv.release(second, 9)
    assert (kv.free, kv.idle, kv.used) == (8, 2, 0)


def test_another_prompt_length_in_a_group_shares_nothing():
    kv = KVCache(10, BLOCK, True)
    first, second = request(9, chain=1, shared=9), request(9, chain=2, shared=5)
    kv.admit(first, 1000)
    assert kv.admit(second, 1000) == 9
    assert kv.used == 6


def test_eviction_takes_free_blocks_first_then_the_oldest_from_its_end():
    kv = KVCache(6, BLOCK, True)
    computed_and_released(kv, request(8, chain=1), request(8, chain=2))
    newcomer = request(12, chain=3)
    assert kv.admit(newcomer, 1000) == 12
    assert (kv.free, kv.idle, kv.used) == (0, 3, 3)
    older, younger = request(9, chain=1, reusable=8), request(9, chain=2, reusable=8)
    kv.release(newcomer, 12)
    kv.admit(younger, 1000)
    assert younger.computed_tokens == 8
    # The third block of the younger chain took the first chain's last one.
    kv.admit(older, 1000)
    assert older.computed_tokens == 0


def test_own_blocks_go_before_the_prompt_of_the_group():
    kv = KVCache(6, BLOCK, True)
    computed_and_released(kv, request(16, chain=1, shared=9))
    kv.take(4)
    sibling = request(9, chain=2, shared=9)
    assert kv.idle == 2
    kv.free += 1  # As if one block had come back.
    kv.capacity += 1
    assert kv.admit(sibling, 1000) == 1


def test_what_does_not_fit_changes_nothing():
    kv = KVCache(4, BLOCK, True)
    computed_and_released(kv, request(8, chain=1))
    kv.take(2)
    refused = request(13, chain=1, reusable=8)
    assert kv.admit(refused, 1000) == 0
    assert (kv.free, kv.idle, kv.used) == (0, 2, 2)


def test_without_caching_everything_is_free_again():
    kv = KVCache(10, BLOCK, False)
    computed_and_released(kv, request(10))
    assert (kv.free, kv.idle) == (10, 0)
    assert kv.admit(request(12, reusable=10), 1000) == 12


def test_drop_idle_forgets_the_prefix_cache():
    kv = KVCache(10, BLOCK, True)
    computed_and_released(kv, request(16, shared=9))
    kv.drop_idle()
    assert (kv.free, kv.idle) == (10, 0)
    assert kv.admit(request(17, shared=9, reusable=16), 1000) == 17


def test_imported_tokens_are_found_by_the_next_turn():
    kv = KVCache(10, BLOCK, True)
    computed_and_released(kv, request(10))
    kv.import_chain(1, 21)
    assert (kv.free, kv.idle, kv.used) == (5, 5, 0)
    following = request(24, reusable=21)
    assert kv.admit(following, 1000) == 4
    assert following.computed_tokens == 20


def test_an_import_evicts_what_is_idle_longest_and_nothing_that_is_used():
    kv = KVCache(6, BLOCK, True)
    computed_and_released(kv, request(8, chain=1), request(8, chain=2))
    running = request(8, chain=3)
    assert kv.admit(running, 1000) == 8
    kv.import_chain(2, 40)
    assert (kv.free, kv.idle, kv.used) == (0, 4, 2)
    kv.release(running, 8)
    gone, grown = request(9, chain=1, reusable=8), request(20, chain=2, reusable=20)
    assert kv.admit(grown, 1000) == 4
    assert grown.computed_tokens == 16
    kv.release(grown, 20)
    assert kv.admit(gone, 1000) == 9


def test_an_import_without_what_comes_before_it_is_dropped():
    kv = KVCache(6, BLOCK, True)
    kv.import_chain(1, 20)
    assert (kv.free, kv.idle, kv.used) == (6, 0, 0)
