import pytest

from rollart.domain.errors import InvariantError
from rollart.sim.clock import SimulatedClock


def test_equal_times_keep_the_order_in_which_they_were_scheduled():
    clock, heard = SimulatedClock(), []
    for delay_s, name in ((2.0, "late"), (1.0, "first"), (1.0, "second"), (1.0, "third")):
        clock.after(delay_s, lambda call: heard.append((clock.now, call.payload)), name)
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
