"""Simulated time: calls on SimPy's calendar, without a process for each, and the run until a stop.

SimPy orders equal times by priority and then by the order in which they were scheduled, so the order of a simulation
is total. Its environment gives the calendar and the numbers; the loop here keeps the time and does what
`Environment.step` does for an entry that cannot fail, without a frame, a list of callbacks and an exception block for
each.

SimPy's calendar is one heap, and a pop from a heap of tens of thousands of entries fetches dozens of them from main
memory. So time is cut into days of one length, as in a calendar queue (Brown, CACM 31(10), 1988): later days are
unsorted lists, a day is sorted once when all before it is over, and only what is planned within the day itself goes on
SimPy's heap. A day is never earlier for a later time, so the order is that of one heap. The length of a day follows the
number of entries that days have.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

import simpy
from simpy.events import NORMAL

from rollart.domain.errors import InvariantError

Entry = tuple[float, int, int, Callable[[Any], None], Any]
"""Time, priority, number, function, payload."""

FIRST_DAYS_PER_S = 64.0
ENTRIES_PER_DAY = 512
"""Aimed at: so many stay in the processor's second cache, and so do the ends of the lists of later days."""
_DAYS_COUNTED, _ENTRIES_COUNTED = 64, 16_384
"""After so many days or entries their mean is looked at; entries, since a day may hold all there are."""
_TOLERANCE = 4
"""A mean within this factor of the aim is left alone, and the length changes by twice this factor at most."""
_MOST_DAYS_PER_S = 1e6
"""However many entries have one and the same time."""
_FAR_S, _LAST_DAY = 1e12, 1 << 62
"""From this time on there is one day, the last."""


class SimulatedClock:
    """The time of a simulation (a `rollart.modelled.clock.Clock`)."""

    __slots__ = (
        "_calendar",
        "_days",
        "_days_counted",
        "_days_per_s",
        "_entries_counted",
        "_next_number",
        "_order",
        "_stopped",
        "_today",
        "now",
    )

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the start."""
        environment = simpy.Environment()
        self._calendar: list[Any] = environment._queue
        self._next_number = environment._eid.__next__
        self._stopped = False
        self._days_per_s = FIRST_DAYS_PER_S
        self._today = -1
        """Days up to this one have begun."""
        self._days: dict[int, list[Entry]] = {}
        self._order: list[int] = []
        """A heap of the days that have entries."""
        self._days_counted = self._entries_counted = 0

    def after(self, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        """Call `function(payload)` after `delay_s` (0 or more) seconds."""
        time_s = self.now + delay_s
        entry = (time_s, NORMAL, self._next_number(), function, payload)
        day = int(time_s * self._days_per_s) if time_s < _FAR_S else _LAST_DAY
        if day <= self._today:
            heappush(self._calendar, entry)
        elif day in self._days:
            self._days[day].append(entry)
        else:
            self._days[day] = [entry]
            heappush(self._order, day)

    def run(self) -> None:
        """Let time pass until `stop` is called; InvariantError when nothing is due before that."""
        calendar = self._calendar
        plan: list[Entry] = []
        while not self._stopped:
            if plan and (not calendar or plan[-1] < calendar[0]):
                self.now, _, _, function, payload = plan.pop()
            elif calendar:
                self.now, _, _, function, payload = heappop(calendar)
            else:
                plan = self._begin_day()
                continue
            function(payload)

    def _begin_day(self) -> list[Entry]:
        """What was planned for the next day that has entries, the last first."""
        if not self._order:
            raise InvariantError(f"deadlock at {self.now} s: nothing is due and the run is not over")
        if self._days_counted >= _DAYS_COUNTED or self._entries_counted >= _ENTRIES_COUNTED:
            self._fit_days()
        self._today = heappop(self._order)
        plan = self._days.pop(self._today)
        plan.sort(reverse=True)
        self._days_counted += 1
        self._entries_counted += len(plan)
        return plan

    def _fit_days(self) -> None:
        """Make days shorter or longer where they have many more or fewer entries than they should."""
        crowding = self._entries_counted / self._days_counted / ENTRIES_PER_DAY
        self._days_counted = self._entries_counted = 0
        if 1 / _TOLERANCE <= crowding <= _TOLERANCE:
            return
        change = min(max(crowding, 0.5 / _TOLERANCE), 2.0 * _TOLERANCE)
        self._days_per_s = min(change * self._days_per_s, _MOST_DAYS_PER_S)
        entries = [entry for day in self._days.values() for entry in day]
        self._days.clear()
        for entry in entries:
            time_s = entry[0]
            day = int(time_s * self._days_per_s) if time_s < _FAR_S else _LAST_DAY
            self._days.setdefault(day, []).append(entry)
        self._order[:] = self._days
        heapify(self._order)

    def stop(self) -> None:
        """End `run` at this instant, after what is due already."""
        self.after(0.0, self._stop, None)

    def _stop(self, _: None) -> None:
        self._stopped = True
