"""Delayed calls on SimPy's calendar, without a process for each.

SimPy orders equal times by priority and then by the order in which they were scheduled, so the order of a simulation
is total.
"""

from collections.abc import Callable
from typing import Any

import simpy
from simpy.core import Environment
from simpy.events import NORMAL, Event


class _Call(Event):
    """A call of `function` with the event's value as its argument."""

    def __init__(self, environment: Environment, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        # Event.__init__ and Timeout.__init__ in one: this is the hottest object of a simulation.
        self.env = environment
        self.callbacks = _CALLBACKS.copy()
        self._value = payload
        self._ok = True
        self.function = function
        environment.schedule(self, NORMAL, delay_s)


def _invoke(call: Any) -> None:
    call.function(call._value)


_CALLBACKS: list[Callable[[Any], None]] = [_invoke]


class Clock:
    """The time of a simulation, and calls that happen later."""

    __slots__ = ("environment",)

    def __init__(self) -> None:
        self.environment = simpy.Environment()

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return float(self.environment.now)

    def after(self, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        """Call `function(payload)` after `delay_s` (0 or more) seconds."""
        _Call(self.environment, delay_s, function, payload)
