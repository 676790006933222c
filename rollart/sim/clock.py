"""Simulated time: calls on SimPy's calendar, without a process for each, and the run until a stop.

SimPy orders equal times by priority and then by the order in which they were scheduled, so the order of a simulation
is total. Its environment gives the calendar and the numbers; the loop here keeps the time and does what
`Environment.step` does for an entry that cannot fail, without a frame, a list of callbacks and an exception block for
each.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import NORMAL

from rollart.domain.errors import InvariantError
from rollart.modelled.clock import Call


class SimulatedClock:
    """The time of a simulation (a `rollart.modelled.clock.Clock`)."""

    __slots__ = ("_calendar", "_next_number", "_stopped", "now")

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the start."""
        environment = simpy.Environment()
        self._calendar: list[Any] = environment._queue
        self._next_number = environment._eid.__next__
        self._stopped = False

    def after(self, delay_s: float, function: Callable[[Call[Any]], None], payload: Any) -> None:
        """Call `function(call)`, with `call.payload` the payload, after `delay_s` (0 or more) seconds."""
        entry = (self.now + delay_s, NORMAL, self._next_number(), Call(function, payload))
        heappush(self._calendar, entry)

    def run(self) -> None:
        """Let time pass until `stop` is called; InvariantError when nothing is due before that."""
        calendar = self._calendar
        while not self._stopped:
            if not calendar:
                raise InvariantError(f"deadlock at {self.now} s: nothing is due and the run is not over")
            self.now, _, _, call = heappop(calendar)
            call.function(call)

    def stop(self) -> None:
        """End `run` at this instant, after what is due already."""
        self.after(0.0, self._stop, None)

    def _stop(self, _: Call[None]) -> None:
        self._stopped = True
