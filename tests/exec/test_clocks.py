import asyncio

import pytest

from rollart.domain.errors import InvariantError
from rollart.exec.clocks import LogicalClock, WallClock


class Diary:
    """What was called when, on one clock."""

    def __init__(self, clock):
        self.clock = clock
        self.entries = []

    def write(self, what):
        self.entries.append((self.clock.now, what))


def run(make, plan):
    """Plan calls on a clock and run it; the clock and its diary."""

    async def live():
        clock = make()
        diary = Diary(clock)
        plan(clock, diary)
        await clock.run()
        return clock, diary.entries

    return asyncio.run(live())


def test_logical_time_jumps_and_equal_times_keep_their_order():
    def plan(clock, diary):
        for delay_s, name in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (5.0, "late")):
            clock.after(delay_s, diary.write, name)
        clock.after(2.0, lambda _: clock.stop(), None)
        clock.after(2.0, diary.write, "d")

    clock, entries = run(LogicalClock, plan)
    assert entries == [(1.0, "a"), (1.0, "b"), (2.0, "c"), (2.0, "d")]
    assert clock.now == 2.0


def test_what_is_due_at_the_instant_of_a_stop_still_happens():
    def plan(clock, diary):
        def stop(_):
            clock.after(0.0, diary.write, "due")
            clock.stop()
            clock.after(0.0, diary.write, "after")

        clock.after(1.0, stop, None)

    assert run(LogicalClock, plan)[1] == [(1.0, "due")]


def test_logical_time_begins_where_it_is_told():
    def plan(clock, diary):
        clock.after(1.5, diary.write, "x")
        clock.after(1.5, lambda _: clock.stop(), None)

    assert run(lambda: LogicalClock(40.0), plan)[1] == [(41.5, "x")]


def test_a_logical_clock_without_calls_is_a_deadlock():
    with pytest.raises(InvariantError, match=r"deadlock at 0\.0 s"):
        run(LogicalClock, lambda *_: None)


@pytest.mark.parametrize("make", [LogicalClock, lambda: WallClock(100.0)], ids=["logical", "wall"])
def test_the_first_failure_ends_the_run(make):
    def plan(clock, diary):
        clock.after(1.0, lambda _: (clock.fail(KeyError("first")), clock.fail(KeyError("second"))), None)
        clock.after(2.0, diary.write, "never")

    with pytest.raises(KeyError, match="first"):
        run(make, plan)


@pytest.mark.parametrize("make", [LogicalClock, lambda: WallClock(100.0)], ids=["logical", "wall"])
def test_a_call_that_raises_ends_the_run(make):
    def plan(clock, _):
        clock.after(1.0, lambda _: 1 / 0, None)

    with pytest.raises(ZeroDivisionError):
        run(make, plan)


def test_wall_time_runs_at_its_speed_in_order():
    def plan(clock, diary):
        for delay_s, name in ((3.0, "b"), (1.0, "a"), (3.0, "c")):
            clock.after(delay_s, diary.write, name)
        clock.after(4.0, lambda _: clock.stop(), None)

    _, entries = run(lambda: WallClock(50.0, start_s=10.0), plan)
    assert [name for _, name in entries] == ["a", "b", "c"]
    assert all(time_s >= 10.0 + due for (time_s, _), due in zip(entries, (1.0, 3.0, 3.0), strict=True))


def test_a_call_that_is_asked_for_while_the_clock_sleeps_is_not_late():
    async def live():
        clock = WallClock(1000.0)
        diary = Diary(clock)
        clock.after(1e9, diary.write, "far")

        async def ask():
            await asyncio.sleep(0.01)
            clock.after(0.0, diary.write, "now")
            clock.after(-1.0, lambda _: clock.stop(), None)

        await asyncio.gather(clock.run(), ask())
        return [name for _, name in diary.entries]

    assert asyncio.run(asyncio.wait_for(live(), 20.0)) == ["now"]
