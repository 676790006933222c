"""The clocks of a driver: wall time, wall time run faster or slower, and logical time.

Every clock keeps its own calendar: calls in the total order (time, priority, sequence), so that calls due at one time
come in the order they were asked for. A call that raises ends the run with its exception.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Protocol

from rollart.domain.errors import InvariantError
from rollart.modelled.clock import Clock

NORMAL = 1
"""Priority of every call; SimPy's calendar has the same, so equal times are ordered alike in both drivers."""

_CALLS_AT_ONCE = 256
"""Calls between two looks of the event loop at signals and sockets."""


class RunClock(Clock, Protocol):
    """A clock that a driver runs by."""

    async def run(self) -> None:
        """Let time pass until `stop` is called; raises what `fail` was given."""
        ...

    def stop(self) -> None:
        """End `run` at this instant, after what is due already."""
        ...

    def fail(self, error: BaseException) -> None:
        """End `run` now, with this error; the first one counts."""
        ...


class _Calendar:
    """Calls that are due later."""

    __slots__ = ("_entries", "_sequence")

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Callable[[Any], None], Any]] = []
        self._sequence = count()

    @property
    def next_s(self) -> float:
        """Time of the first call; infinite when there is none."""
        return self._entries[0][0] if self._entries else inf

    def add(self, time_s: float, function: Callable[[Any], None], payload: Any) -> None:
        heappush(self._entries, (time_s, NORMAL, next(self._sequence), function, payload))

    def call_next(self) -> None:
        """Take the first call and make it."""
        _, _, _, function, payload = heappop(self._entries)
        function(payload)


class LogicalClock:
    """Time that jumps from call to call: nothing happens in between, and no message is on its way.

    What a call does, the messages that it sends and what their receivers do happen before the next call.
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s
        self._calendar = _Calendar()
        self._stopped = False
        self._error: BaseException | None = None

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self._now

    def after(self, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        """Call `function(payload)` after `delay_s` (0 or more) seconds."""
        self._calendar.add(self._now + delay_s, function, payload)

    async def run(self) -> None:
        """Make all calls until `stop`; InvariantError when nothing is due before that."""
        calendar = self._calendar
        made = 0
        while not self._stopped:
            if self._error is not None:
                raise self._error
            if calendar.next_s == inf:
                raise InvariantError(f"deadlock at {self._now} s: nothing is due and the run is not over")
            self._now = calendar.next_s
            calendar.call_next()
            made += 1
            if made % _CALLS_AT_ONCE == 0:
                await asyncio.sleep(0)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End `run` at this instant, after what is due already."""
        self.after(0.0, self._stop, None)

    def _stop(self, _: None) -> None:
        self._stopped = True

    def fail(self, error: BaseException) -> None:
        """End `run` now, with this error; the first one counts."""
        self._error = self._error or error


class WallClock:
    """Real time; with a `speed` above 1 a second of the run takes less than a second of wall time."""

    def __init__(self, speed: float = 1.0, start_s: float = 0.0, wall: Callable[[], float] = time.monotonic) -> None:
        """`speed` in run seconds per wall second; the time starts at `start_s` now."""
        self._speed = speed
        self._start_s = start_s
        self._wall = wall
        self._wall_start_s = wall()
        self._calendar = _Calendar()
        self._changed = asyncio.Event()
        self.stopped = False
        """Whether `stop` was called."""
        self.on_empty: Callable[[], None] = lambda: None
        """Called before a wait for which nothing is due."""
        self._error: BaseException | None = None

    @property
    def now(self) -> float:
        """Seconds of the run since its start."""
        return self._start_s + (self._wall() - self._wall_start_s) * self._speed

    @property
    def next_s(self) -> float:
        """When the next call is due; infinite when none is."""
        return self._calendar.next_s

    def after(self, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        """Call `function(payload)` after `delay_s` seconds (at once if negative)."""
        time_s = self.now + max(0.0, delay_s)
        if time_s < self._calendar.next_s:
            self._changed.set()
        self._calendar.add(time_s, function, payload)

    async def run(self) -> None:
        """Make the calls when they are due until `stop`; raises what `fail` was given."""
        while not self.stopped and self._error is None:
            self._changed.clear()
            self._make_due()
            await self._wait()
        if self._error is not None:
            raise self._error

    def _make_due(self) -> None:
        """Make calls that are due, at most so many at once; the messages they send are handled in between."""
        calendar = self._calendar
        for _ in range(_CALLS_AT_ONCE):
            if self.stopped or self._error is not None or calendar.next_s > self.now:
                return
            calendar.call_next()

    async def _wait(self) -> None:
        """Sleep until the next call is due, or something else happens."""
        if self.stopped or self._error is not None:
            return
        if self._calendar.next_s == inf:
            self.on_empty()
        left_s = (self._calendar.next_s - self.now) / self._speed
        if left_s <= 0.0:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), None if left_s == inf else left_s)

    def stop(self) -> None:
        """End `run`."""
        self.stopped = True
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """End `run` now, with this error; the first one counts."""
        self._error = self._error or error
        self._changed.set()
