"""Sums over a decoding batch against a loop over its requests."""

from hypothesis import given
from hypothesis import strategies as st

from rollart.serving import Request
from rollart.serving.batch import DecodeBatch


def batch_of(contexts, block_size, iteration=0, output_tokens=50):
    batch = DecodeBatch(block_size)
    batch.iteration = iteration
    for ticket, context in enumerate(contexts, 1):
        request = Request(request_id=ticket, chain=0, context_tokens=context, output_tokens=output_tokens)
        request.ticket = ticket
        batch.join(request)
    return batch


def blocks_started(contexts, block_size, first, last):
    """New blocks of iterations first .. last: one wherever the tokens with KV fill whole blocks."""
    return sum((context - 1 + i) % block_size == 0 for context in contexts for i in range(first, last + 1))


contexts = st.lists(st.integers(1, 100), min_size=1, max_size=12)


@given(contexts=contexts, block_size=st.sampled_from([1, 4, 16]), later=st.integers(0, 70), at=st.integers(0, 40))
def test_blocks_of_iterations(contexts, block_size, later, at):
    batch = batch_of(contexts, block_size, iteration=at)
    assert batch.blocks_now() == blocks_started(contexts, block_size, 0, 0)
    assert batch.blocks_later(later) == blocks_started(contexts, block_size, 1, later)


@given(contexts=contexts, block_size=st.sampled_from([1, 4, 16]), most=st.integers(0, 70), blocks=st.integers(0, 80))
def test_iterations_within_blocks(contexts, block_size, most, blocks):
    fitting = batch_of(contexts, block_size, iteration=7).iterations_within(blocks, most)
    assert blocks_started(contexts, block_size, 1, fitting) <= blocks
    assert fitting == most or blocks_started(contexts, block_size, 1, fitting + 1) > blocks


def test_tokens_and_finish_by_hand():
    batch = DecodeBatch(16)
    short = Request(request_id=1, chain=0, context_tokens=10, output_tokens=2)
    long = Request(request_id=2, chain=0, context_tokens=20, output_tokens=5)
    short.ticket, long.ticket = 1, 2
    batch.join(short)
    batch.join(long)
    assert (batch.size, batch.tokens, batch.iterations_to_finish()) == (2, 30, 2)
    batch.advance(2)
    assert batch.tokens == 34
    assert batch.finished() == [short.ticket]
    assert batch.leave(short) == 11
    assert (batch.size, batch.tokens, batch.iterations_to_finish()) == (1, 22, 3)


def test_a_request_that_left_does_not_finish():
    batch = batch_of([5], 16, output_tokens=2)
    gone = Request(request_id=2, chain=0, context_tokens=7, output_tokens=1)
    gone.ticket = 2
    batch.join(gone)
    assert batch.iterations_to_finish() == 1
    batch.leave(gone)
    assert batch.iterations_to_finish() == 2
    batch.advance(1)
    assert batch.finished() == []
    batch.advance(1)
    assert batch.finished() == [1]


def test_those_that_finish_together_come_in_order_of_admission():
    batch = batch_of([5, 90, 7, 3], 16, output_tokens=4)
    batch.advance(4)
    assert batch.finished() == [1, 2, 3, 4]
