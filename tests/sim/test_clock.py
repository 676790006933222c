import math
import random
from heapq import heappop, heappush

import pytest

from rollart.domain.errors import InvariantError
from rollart.sim.clock import SimulatedClock


def test_equal_times_keep_the_order_in_which_they_were_scheduled():
    clock, heard = SimulatedClock(), []
    for delay_s, name in ((2.0, "late"), (1.0, "first"), (1.0, "second"), (1.0, "third")):
        clock.after(delay_s, lambda name: heard.append((clock.now, name)), name)
    clock.after(3.0, lambda _: clock.stop(), None)
    clock.run()
    assert heard == [(1.0, "first"), (1.0, "second"), (1.0, "third"), (2.0, "late")]


def test_a_call_without_delay_comes_after_what_is_due_already():
    clock, heard = SimulatedClock(), []

    def first(_):
        heard.append("first")
        clock.after(0.0, lambda _: heard.append("nested"), None)

    clock.after(1.0, first, None)
    clock.after(1.0, lambda _: heard.append("second"), None)
    clock.after(2.0, lambda _: clock.stop(), None)
    clock.run()
    assert heard == ["first", "second", "nested"]


def test_times_that_are_reached_by_different_sums_are_not_equal():
    clock, heard = SimulatedClock(), []
    clock.after(0.1, lambda _: clock.after(0.2, lambda _: heard.append("0.1 + 0.2"), None), None)
    clock.after(0.3, lambda _: heard.append("0.3"), None)
    clock.after(1.0, lambda _: clock.stop(), None)
    clock.run()
    assert heard == ["0.3", "0.1 + 0.2"]


def test_stop_lets_happen_what_is_due_and_nothing_later():
    clock, heard = SimulatedClock(), []
    clock.after(1.0, lambda _: clock.stop(), None)
    clock.after(1.0, lambda _: heard.append("due"), None)
    clock.after(1.5, lambda _: heard.append("later"), None)
    clock.run()
    assert heard == ["due"]
    assert clock.now == 1.0


def test_a_second_stop_changes_nothing():
    clock = SimulatedClock()
    clock.after(1.0, lambda _: clock.stop(), None)
    clock.after(1.0, lambda _: clock.stop(), None)
    clock.run()
    assert clock.now == 1.0


def test_an_empty_calendar_before_the_stop_is_a_deadlock():
    clock = SimulatedClock()
    clock.after(2.5, lambda _: None, None)
    with pytest.raises(InvariantError, match=r"deadlock at 2\.5 s"):
        clock.run()


def test_errors_of_a_call_come_through():
    clock = SimulatedClock()

    def fail(_):
        raise ValueError("broken")

    clock.after(1.0, fail, None)
    with pytest.raises(ValueError, match="broken"):
        clock.run()


class OneHeap:
    """The order that the clock promises, from a calendar that is one heap."""

    def __init__(self):
        self.now, self.entries, self.number = 0.0, [], 0

    def after(self, delay_s, function, payload):
        self.number += 1
        heappush(self.entries, (self.now + delay_s, self.number, function, payload))

    def run(self):
        while self.entries:
            self.now, _, function, payload = heappop(self.entries)
            function(payload)


def story(clock, seed, delays_s, calls):
    """Calls that plan further ones, until so many were made; what was called when."""
    chance, heard = random.Random(seed), []

    def call(name):
        heard.append((clock.now, name))
        if len(heard) < calls:
            for _ in range(chance.choice((0, 1, 1, 2))):
                clock.after(chance.choice(delays_s), call, chance.random())

    for name in range(200):
        clock.after(chance.choice(delays_s), call, name)
    return heard


DELAYS_S = {
    "alike": [0.1 * n for n in range(20)],
    "at once": [0.0, 0.0, 1e-9],
    "in bursts": [0.0, 7.0, 7.0, 1e3],
    "of every length": [10.0**n for n in range(-9, 9)],
    "ever denser than the first days": [1e-6 * n for n in range(1, 50)],
}


@pytest.mark.parametrize("delays_s", DELAYS_S.values(), ids=DELAYS_S)
@pytest.mark.parametrize("seed", range(3))
def test_days_of_any_length_have_the_order_of_one_heap(seed, delays_s):
    clock, heap = SimulatedClock(), OneHeap()
    told, expected = (story(calendar, seed, delays_s, 20_000) for calendar in (clock, heap))
    heap.run()
    clock.after(1e12, lambda _: clock.stop(), None)
    clock.run()
    assert told == expected
    assert len(told) > 200


def test_days_get_shorter_where_much_happens_and_longer_where_little_does():
    clock = SimulatedClock()
    first = clock._days_per_s
    for number in range(50_000):
        clock.after(1e-6 * number, lambda _: None, None)
    clock.after(1.0, lambda _: clock.stop(), None)
    clock.run()
    assert clock._days_per_s > first
    clock = SimulatedClock()
    for hour in range(1000):
        clock.after(3600.0 * hour, lambda _: None, None)
    clock.after(3600.0 * 1000, lambda _: clock.stop(), None)
    clock.run()
    assert clock._days_per_s < first


def test_days_do_not_get_ever_shorter_when_all_is_due_at_once():
    clock = SimulatedClock()
    for number in range(1000):
        for _ in range(300):
            clock.after(1.0 * number, lambda _: None, None)
    clock.after(1e3, lambda _: clock.stop(), None)
    clock.run()
    assert clock._days_per_s < 1e7


def test_what_is_due_never_waits_behind_everything():
    clock, heard = SimulatedClock(), []
    clock.after(math.inf, lambda _: heard.append("never"), None)
    clock.after(1e300, lambda _: heard.append("last"), None)
    clock.after(1e300, lambda _: clock.stop(), None)
    clock.run()
    assert heard == ["last"]
