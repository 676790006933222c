"""The order in which cached segments became idle, which is the order of eviction.

A segment that is claimed again leaves its entry behind, to be passed over when its turn comes: looking for a place in
the middle of a queue costs more memory traffic than all the rest of a claim.
"""

from collections import deque
from collections.abc import Iterator

from rollart.serving.segment import Segment

_SPARE = 32
"""Void entries that are not worth tidying up."""


class IdleQueue:
    """Idle segments, the one that became so first at the head."""

    __slots__ = ("_entries", "_number", "_void")

    def __init__(self) -> None:
        self._entries: deque[tuple[int, Segment]] = deque()
        self._number = 0
        self._void = 0

    def __iter__(self) -> Iterator[Segment]:
        return (segment for number, segment in self._entries if segment.idle_number == number)

    def add(self, segment: Segment) -> None:
        """The segment, which is not idle, becomes so now."""
        self._number += 1
        segment.idle_number = self._number
        self._entries.append((self._number, segment))

    def remove(self, segment: Segment) -> None:
        """An idle segment is claimed or gone."""
        segment.idle_number = 0
        self._void += 1
        if self._void > _SPARE and 2 * self._void > len(self._entries):
            self._entries = deque((each.idle_number, each) for each in self)
            self._void = 0

    def oldest(self) -> Segment:
        """The one that became idle first; IndexError where none is idle."""
        entries = self._entries
        while True:
            number, segment = entries[0]
            if segment.idle_number == number:
                return segment
            entries.popleft()
            self._void -= 1
