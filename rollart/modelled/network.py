"""A link whose transfers share its bandwidth equally (processor sharing), exact and O(log n) per transfer.

Virtual time V is the bytes that each transfer has moved since the link was made: dV/dt = bandwidth / transfers. A
transfer of b bytes that starts at V ends when V reaches V + b, whatever comes and goes in between.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from rollart.domain.cluster import Link
from rollart.modelled.clock import Clock


class SharedLink:
    """One link in simulated time."""

    __slots__ = ("_active", "_clock", "_link", "_number", "_plan", "_since_s", "_virtual", "busy_s", "bytes")

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self._active: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._plan = 0
        self._virtual = 0.0
        self._since_s = 0.0
        self.busy_s = 0.0
        self.bytes = 0.0

    def transfer(self, size_bytes: float, done: Callable[[], None]) -> None:
        """Move `size_bytes`, then call `done`; the latency of the link is paid first, alone."""
        self._clock.after(self._link.latency_s, self._begin, (size_bytes, done))

    def _begin(self, about: tuple[float, Callable[[], None]]) -> None:
        size_bytes, done = about
        self._catch_up()
        self.bytes += size_bytes
        self._number += 1
        heappush(self._active, (self._virtual + size_bytes, self._number, done))
        self._schedule()

    def _catch_up(self) -> None:
        elapsed_s = self._clock.now - self._since_s
        self._since_s = self._clock.now
        if self._active:
            self.busy_s += elapsed_s
            self._virtual += elapsed_s * self._link.bandwidth_bytes_per_s / len(self._active)

    def _schedule(self) -> None:
        self._plan += 1
        if self._active:
            left = max(0.0, self._active[0][0] - self._virtual)
            self._clock.after(left * len(self._active) / self._link.bandwidth_bytes_per_s, self._end, self._plan)

    def _end(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._catch_up()
        target, _, done = heappop(self._active)
        self._virtual = max(self._virtual, target)
        self._schedule()
        done()
