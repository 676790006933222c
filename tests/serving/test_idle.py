"""The queue of idle segments against an ordered dict, whose operations are the definition."""

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollart.serving.idle import IdleQueue
from rollart.serving.segment import Segment

KEYS = 60


@given(moves=st.lists(st.one_of(st.integers(0, KEYS - 1), st.just("oldest")), max_size=400))
def test_order_is_that_of_an_ordered_dict(moves):
    queue, model = IdleQueue(), OrderedDict()
    segments = [Segment(key, 0, 1, 0) for key in range(KEYS)]
    for move in moves:
        if move == "oldest":
            if not model:
                continue
            segment = queue.oldest()
            assert segment is next(iter(model))
        else:
            segment = segments[move]
        if segment in model:
            del model[segment]
            queue.remove(segment)
        else:
            model[segment] = None
            queue.add(segment)
        assert list(queue) == list(model)


def test_void_entries_are_tidied_up():
    queue, kept, moved = IdleQueue(), Segment(0, 0, 1, 0), Segment(1, 0, 1, 0)
    queue.add(kept)
    for _ in range(1000):
        queue.add(moved)
        queue.remove(moved)
    assert list(queue) == [kept]
    assert len(queue._entries) <= 34


def test_nobody_is_the_oldest_of_none():
    queue, segment = IdleQueue(), Segment(0, 0, 1, 0)
    queue.add(segment)
    queue.remove(segment)
    with pytest.raises(IndexError):
        queue.oldest()
