"""Open and closed loop on engines whose times can be added up by hand."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.costs.interface import LinearPiece
from rollart.domain.errors import CapacityError, InputError
from rollart.loadtest.closed_loop import Load, keep_in_flight
from rollart.loadtest.open_loop import replay
from rollart.loadtest.requests import RequestLog, TimedRequest
from rollart.serving import Engine, EngineConfig


class Seconds:
    """One second for any iteration."""

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def decode(self, *_):
        return LinearPiece(1.0, 0.0, inf)

    def mixed_s(self, *_):
        return 1.0


def engine(**settings):
    limits = {"max_num_seqs": 64, "max_num_batched_tokens": 1024, "kv_blocks": 10_000, **settings}
    return Engine(EngineConfig(**limits), Seconds())


def log(*requests, **more):
    return RequestLog(name="log", requests=requests, **more)


def test_requests_come_at_their_times():
    served = replay(log(TimedRequest(0.0, 10, 3), TimedRequest(1.5, 10, 1)), [engine()])
    # The second one starts with the iteration at 2 s and has its token at 3 s.
    assert [met.first_token_s for met in served.latencies] == [1.0, 1.5]
    assert served.latencies[0].last_token_s == 3.0
    assert served.duration_s == 3.0


def test_each_request_goes_to_the_least_loaded_engine():
    one_at_a_time = [engine(max_num_seqs=1) for _ in range(2)]
    served = replay(log(*[TimedRequest(0.0, 1, 2)] * 4), one_at_a_time)
    assert [met.last_token_s for met in served.latencies] == [2.0, 2.0, 4.0, 4.0]


def test_a_prefix_is_computed_once():
    subject = engine(prefix_tokens=512)
    requests = [TimedRequest(0.0, 1024, 1, (1, 2)), TimedRequest(10.0, 1500, 1, (1, 2, 3))]
    replay(log(*requests, prefix_tokens=512), [subject])
    usage = subject.usage(20.0)
    assert (usage.prefill_tokens, usage.cached_tokens) == (1024 + 476, 1024)


def test_a_request_that_fits_no_engine_is_refused():
    with pytest.raises(CapacityError, match="request 0 needs the KV of 100 tokens"):
        replay(log(TimedRequest(0.0, 100, 1)), [engine(kv_blocks=1)])


def test_a_closed_loop_keeps_its_requests_in_flight():
    """Two at a time, three iterations each: six requests take three rounds."""
    load = Load(concurrency=2, input_tokens=10, output_tokens=3, requests=6)
    served = keep_in_flight(load, [engine()])
    assert served.duration_s == 9.0
    assert {met.first_token_s for met in served.latencies} == {1.0}
    assert {met.per_token_s for met in served.latencies} == {1.0}


def test_a_loop_larger_than_its_requests_ends():
    load = Load(concurrency=10, input_tokens=1, output_tokens=1, requests=3)
    assert len(keep_in_flight(load, [engine()]).latencies) == 3


@settings(max_examples=20, deadline=None)
@given(
    concurrency=st.integers(1, 20),
    requests=st.integers(1, 60),
    length_range=st.sampled_from([0.1, 0.8, 1.0]),
    engines=st.integers(1, 3),
)
def test_every_request_is_served_with_its_length(concurrency, requests, length_range, engines):
    load = Load(
        concurrency=concurrency, input_tokens=100, output_tokens=20, requests=requests, length_range=length_range
    )
    lengths = list(load.lengths())
    assert all(100 * length_range - 1 < i <= 100 and 20 * length_range - 1 < o <= 20 for i, o in lengths)
    served = keep_in_flight(load, [engine(max_num_seqs=8) for _ in range(engines)])
    assert [met.output_tokens for met in served.latencies] == [output for _, output in lengths]


@pytest.mark.parametrize(
    ("figures", "message"),
    [({"concurrency": 0}, "load concurrency is 0"), ({"length_range": 1.5}, r"length_range is 1.5; it must be in")],
)
def test_a_load_without_sense_is_refused(figures, message):
    with pytest.raises(InputError, match=message):
        Load(**{"concurrency": 1, "input_tokens": 1, "output_tokens": 1, "requests": 1, **figures})
