"""The engines as the controller knows them: who is up, who is loaded how much, who serves a task.

Load is the number of trajectories bound to an engine. A heap per set of classes finds the least loaded in O(log n);
entries that no longer hold are dropped when they surface, or all at once when a heap has grown to several times its
engines. Heaps and lists are derived from the state, never saved.
"""

from heapq import heapify, heappop, heappush

from rollart.domain.plan import Role
from rollart.sched.config import ControllerConfig
from rollart.sched.parts.registry import Policy
from rollart.sched.parts.router import Request
from rollart.sched.state import ControllerState, Engine, EngineStatus, Trajectory

Heap = list[tuple[float, int]]

_ENTRIES, _ENTRIES_PER_ENGINE = 64, 8
"""A heap is made anew beyond this size: rare enough to cost nothing, often enough to stay in the cache."""


class Fleet:
    """Binds trajectories to engines, by the policy's router."""

    __slots__ = (
        "_class_heaps",
        "_cost",
        "_decode",
        "_heaps",
        "_held",
        "_most_entries",
        "_prefill",
        "_router",
        "_shares",
        "_sticky",
        "_tiers",
        "_trajectories",
        "_up",
        "classes",
        "engines",
    )

    def __init__(self, config: ControllerConfig, state: ControllerState, policy: Policy) -> None:
        self.engines: list[Engine] = state.engines
        self.classes = config.engine_classes
        self._router = policy.router
        self._sticky = policy.router.sticky
        self._cost = [1.0 / config.classes[index].weight for index in self.classes]
        decoding = {index for index, group in enumerate(config.classes) if group.role in (Role.BOTH, Role.DECODE)}
        self._tiers = [
            (frozenset(task.suited) & decoding, frozenset(task.fallback) & decoding) for task in config.tasks
        ]
        prefill = frozenset(i for i, group in enumerate(config.classes) if group.role is Role.PREFILL)
        self._trajectories = state.trajectories
        self._shares = [
            {index: share for index, share in zip(task.suited, task.shares, strict=True) if index in decoding}
            if task.shares
            else {}
            for task in config.tasks
        ]
        self._held: list[dict[int, int]] = []
        """Task with shares -> class -> trajectories that are bound there."""
        sets = {tier for tiers in self._tiers for tier in tiers} | {prefill}
        sets |= {frozenset((index,)) for shares in self._shares for index in shares}
        self._heaps: dict[frozenset[int], Heap] = {members: [] for members in sets}
        self._class_heaps = [
            [heap for members, heap in self._heaps.items() if index in members] for index in range(len(config.classes))
        ]
        self._most_entries = _ENTRIES + _ENTRIES_PER_ENGINE * len(self.engines)
        self._up: dict[frozenset[int], list[int]] = {}
        self._prefill = prefill
        self._decode = {i for i, group in enumerate(config.classes) if group.role is Role.DECODE}
        self.rebuild()

    def rebuild(self) -> None:
        """Make the heaps anew from the engines' status and load."""
        for members, heap in self._heaps.items():
            heap[:] = [(self.engines[index].load * self._cost[index], index) for index in self._members_up(members)]
            heapify(heap)
        self._held = [dict.fromkeys(shares, 0) for shares in self._shares]
        if any(self._shares):
            for trajectory in self._trajectories.values():
                self._count(trajectory, 1)

    # The view that routers get

    def least_loaded(self, task: int, tier: int) -> int | None:
        """The engine of the tier that is up with the least load for its weight, lowest index first.

        A task with shares first gets the suited class that is furthest behind its own, among those that are up.
        """
        if tier == 0 and self._shares[task]:
            return self._least_loaded_by_share(task)
        return self._top(self._heaps[self._tiers[task][tier]])

    def _least_loaded_by_share(self, task: int) -> int | None:
        held = self._held[task]
        for index, _ in sorted(self._shares[task].items(), key=lambda one: ((held[one[0]] + 1) / one[1], one[0])):
            engine = self._top(self._heaps[frozenset((index,))])
            if engine is not None:
                return engine
        return None

    def up(self, task: int, tier: int) -> list[int]:
        """All engines of the tier that are up, in index order."""
        return self._members_up(self._tiers[task][tier])

    def _members_up(self, members: frozenset[int]) -> list[int]:
        found = self._up.get(members)
        if found is None:
            found = self._up[members] = [
                index
                for index, engine in enumerate(self.engines)
                if engine.status is EngineStatus.UP and self.classes[index] in members
            ]
        return found

    # What the rollout uses

    def _alive(self, index: int, incarnation: int) -> bool:
        if index < 0:
            return False
        engine = self.engines[index]
        return engine.status is EngineStatus.UP and engine.incarnation == incarnation

    def holds(self, trajectory: Trajectory) -> bool:
        """Whether the engines that served the trajectory last are up and still the same incarnations."""
        return self._alive(trajectory.engine, trajectory.incarnation) and (
            trajectory.prefill_engine < 0 or self._alive(trajectory.prefill_engine, trajectory.prefill_incarnation)
        )

    def bind(self, trajectory: Trajectory) -> bool:
        """Give the trajectory an engine for its next turn; False when none is up."""
        holds = self.holds(trajectory)
        if holds and self._sticky:
            return True
        current = trajectory.engine if holds else None
        request = Request(
            trajectory=trajectory.id,
            task=trajectory.task,
            group=trajectory.group,
            turn=trajectory.turn,
            context_tokens=trajectory.context,
            current=current,
        )
        chosen = self._router.choose(request, self)
        if chosen is None:
            return False
        if chosen != current:
            self.release(trajectory)
            self._attach(trajectory, chosen)
        return True

    def _attach(self, trajectory: Trajectory, index: int) -> None:
        trajectory.engine = index
        trajectory.incarnation = self.engines[index].incarnation
        self._load(index, 1)
        self._count(trajectory, 1)
        prefill = self._top(self._heaps[self._prefill]) if self.classes[index] in self._decode else None
        if prefill is not None:
            trajectory.prefill_engine = prefill
            trajectory.prefill_incarnation = self.engines[prefill].incarnation
            self._load(prefill, 1)

    def release(self, trajectory: Trajectory) -> None:
        """Undo the binding."""
        self._count(trajectory, -1)
        if self._alive(trajectory.engine, trajectory.incarnation):
            self._load(trajectory.engine, -1)
        if self._alive(trajectory.prefill_engine, trajectory.prefill_incarnation):
            self._load(trajectory.prefill_engine, -1)
        trajectory.engine = trajectory.incarnation = -1
        trajectory.prefill_engine = trajectory.prefill_incarnation = -1

    def _count(self, trajectory: Trajectory, change: int) -> None:
        """Keep the count of a task's trajectories by class."""
        if trajectory.engine >= 0 and self._shares[trajectory.task]:
            held, index = self._held[trajectory.task], self.classes[trajectory.engine]
            if index in held:
                held[index] += change

    def changed(self, index: int) -> None:
        """An engine came up or went down."""
        self._up.clear()
        self._load(index, 0)

    def _load(self, index: int, change: int) -> None:
        engine = self.engines[index]
        engine.load += change
        entry = (engine.load * self._cost[index], index)
        for heap in self._class_heaps[self.classes[index]]:
            heappush(heap, entry)
            if len(heap) > self._most_entries:
                self.rebuild()

    def _top(self, heap: Heap) -> int | None:
        while heap:
            cost, index = heap[0]
            engine = self.engines[index]
            if engine.status is EngineStatus.UP and engine.load * self._cost[index] == cost:
                return index
            heappop(heap)
        return None
