"""Simulated time: calls on SimPy's calendar, without a process for each, and the run until a stop.

SimPy orders equal times by priority and then by the order in which they were scheduled, so the order of a simulation
is total.
"""

from collections.abc import Callable
from typing import Any, cast

import simpy
from simpy.events import NORMAL, Event

from rollart.domain.errors import InvariantError
from rollart.modelled.clock import Call


class SimulatedClock:
    """The time of a simulation (a `rollart.modelled.clock.Clock`)."""

    __slots__ = ("_schedule", "_stop", "environment")

    def __init__(self) -> None:
        self.environment = simpy.Environment()
        self._schedule = self.environment.schedule
        self._stop = self.environment.event()

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return cast(float, self.environment._now)

    def after(self, delay_s: float, function: Callable[[Call[Any]], None], payload: Any) -> None:
        """Call `function(call)`, with `call.payload` the payload, after `delay_s` (0 or more) seconds."""
        self._schedule(cast(Event, Call(function, payload)), NORMAL, delay_s)

    def run(self) -> None:
        """Let time pass until `stop` is called; InvariantError when nothing is due before that."""
        try:
            self.environment.run(until=self._stop)
        except RuntimeError as error:
            if self._stop.triggered or self.environment.peek() != float("inf"):
                raise
            raise InvariantError(f"deadlock at {self.now} s: nothing is due and the run is not over") from error

    def stop(self) -> None:
        """End `run` at this instant, after what is due already."""
        if not self._stop.triggered:
            self._stop.succeed()
