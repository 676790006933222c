"""Shared links: closed forms, and a naive fluid simulation as the oracle."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.cluster import Link
from rollart.modelled.network import SharedLink
from rollart.sim.clock import SimulatedClock


def ends_of(transfers, *, bandwidth=100.0, latency_s=0.0):
    """Time at which each (start, bytes) ends, and the link afterwards."""
    clock = SimulatedClock()
    link = SharedLink(Link(bandwidth_bytes_per_s=bandwidth, latency_s=latency_s), clock)
    ends = [None] * len(transfers)

    def begin(number):
        link.transfer(transfers[number][1], lambda: ends.__setitem__(number, clock.now))

    for number, (start_s, _) in enumerate(transfers):
        clock.after(start_s, begin, number)
    clock.after(1e7, lambda _: clock.stop(), None)
    clock.run()
    return ends, link


def fluid(transfers, bandwidth):
    """The same by a loop over all transfers at every change: ends, and busy seconds."""
    left = {}
    ends = [0.0] * len(transfers)
    coming = sorted(range(len(transfers)), key=lambda number: transfers[number][0])
    now = busy_s = 0.0
    while coming or left:
        arrival_s = transfers[coming[0]][0] if coming else float("inf")
        rate = bandwidth / len(left) if left else 0.0
        end_s = now + min(left.values()) / rate if left else float("inf")
        until_s = min(arrival_s, end_s)
        busy_s += until_s - now if left else 0.0
        for number in left:
            left[number] -= rate * (until_s - now)
        now = until_s
        for number in [number for number, size in left.items() if size <= 1e-9 * transfers[number][1]]:
            ends[number] = now
            del left[number]
        while coming and transfers[coming[0]][0] <= now:
            number = coming.pop(0)
            left[number] = transfers[number][1]
    return ends, busy_s


def test_a_transfer_alone_takes_latency_and_bytes_over_bandwidth():
    ends, link = ends_of([(1.0, 250.0)], latency_s=0.5)
    assert ends == [1.0 + 0.5 + 2.5]
    assert (link.bytes, link.busy_s) == (250.0, 2.5)


def test_two_equal_transfers_take_twice_as_long():
    ends, link = ends_of([(0.0, 100.0), (0.0, 100.0)])
    assert ends == [2.0, 2.0]
    assert (link.bytes, link.busy_s) == (200.0, 2.0)


def test_a_short_transfer_leaves_and_the_long_one_speeds_up():
    # Until 1 s each moves 50; then 150 are left for the long one, alone.
    assert ends_of([(0.0, 200.0), (0.0, 50.0)])[0] == [2.5, 1.0]


def test_a_late_arrival_slows_down_what_is_on_its_way():
    # 100 are moved by 1 s; then both get 50/s: the late one ends at 2 s, the first has 50 left.
    assert ends_of([(0.0, 200.0), (1.0, 50.0)])[0] == [2.5, 2.0]


def test_latency_is_paid_before_the_transfer_shares():
    # The second begins to share at 1 + 1 = 2 s, when the first (begun at 1 s) has 100 of 200 left.
    ends, link = ends_of([(0.0, 200.0), (1.0, 50.0)], latency_s=1.0)
    assert ends == [3.5, 3.0]
    assert link.busy_s == 2.5


def test_an_idle_link_is_not_busy():
    ends, link = ends_of([(0.0, 100.0), (10.0, 100.0)])
    assert ends == [1.0, 11.0]
    assert link.busy_s == 2.0


def test_nothing_to_move_takes_no_time():
    ends, link = ends_of([(1.0, 0.0), (1.0, 100.0)])
    assert ends == [1.0, 2.0]
    assert link.bytes == 100.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40).map(lambda n: n / 8), st.integers(1, 900)), min_size=1, max_size=12),
    st.sampled_from([16.0, 100.0, 1e3]),
)
def test_processor_sharing_equals_the_fluid_simulation(transfers, bandwidth):
    ends, link = ends_of(transfers, bandwidth=bandwidth)
    expected, busy_s = fluid(transfers, bandwidth)
    assert ends == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert link.busy_s == pytest.approx(busy_s, rel=1e-7)
    assert link.bytes == sum(size for _, size in transfers)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=30))
def test_a_link_that_is_never_idle_moves_its_bandwidth(sizes):
    ends, link = ends_of([(0.0, size) for size in sizes], bandwidth=1e6)
    assert max(ends) == pytest.approx(sum(sizes) / 1e6, rel=1e-9)
    assert link.busy_s == pytest.approx(sum(sizes) / 1e6, rel=1e-9)
