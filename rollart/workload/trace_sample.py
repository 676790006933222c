"""A small sample of a trace that is read once: the trajectories whose hash is lowest, whatever their order."""

import heapq
from collections.abc import Sequence

from rollart.workload.group_choice import member_place
from rollart.workload.trace import TraceTrajectory


class TraceSample:
    """Keeps at most `size` trajectories of each task that have a turn."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self._size = size
        self._seed = seed
        self._kept: dict[str, list[tuple[float, int, TraceTrajectory]]] = {}
        self._seen = 0

    def add(self, trajectory: TraceTrajectory) -> None:
        """Show it one trajectory."""
        if not trajectory.turns:
            return
        self._seen += 1
        kept = self._kept.setdefault(trajectory.task, [])
        # Negative, since heapq keeps the least on top and the largest place must go; the count settles equal ones.
        entry = (-member_place(trajectory, self._seed), self._seen, trajectory)
        if len(kept) < self._size:
            heapq.heappush(kept, entry)
        elif entry > kept[0]:
            heapq.heapreplace(kept, entry)

    def of(self, task: str) -> Sequence[TraceTrajectory]:
        """Those kept of a task, lowest hash first."""
        return [trajectory for _, _, trajectory in sorted(self._kept.get(task, ()), reverse=True)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that were seen, in order."""
        return tuple(self._kept)
