"""Router: which engine serves the next turn of a trajectory."""

from dataclasses import dataclass
from typing import Protocol


class EngineView(Protocol):
    """What a router may ask of the engines; `tier` 0 are the suited classes of a task, 1 its fallback."""

    def least_loaded(self, task: int, tier: int) -> int | None:
        """The engine that is up with the least load for its weight; None: none of the tier is up."""
        ...

    def up(self, task: int, tier: int) -> list[int]:
        """All engines of the tier that are up, in index order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a router knows of the turn: nothing of its future length."""

    trajectory: int
    task: int
    group: int
    turn: int
    context_tokens: int
    current: int | None
    """The engine that served the previous turn, while it is up."""


class Router(Protocol):
    """Decides which engine serves a turn."""

    def choose(self, request: Request, engines: EngineView) -> int | None:
        """An engine that is up, or None when no engine can serve the task."""
        ...

    @property
    def sticky(self) -> bool:
        """Whether a trajectory stays on its engine while that is up (`choose` is then asked only without one)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastLoaded:
    """The least loaded of the suited engines, else of the fallback; sticky, for the prefix cache."""

    sticky: bool = True

    def choose(self, request: Request, engines: EngineView) -> int | None:
        """Suited first, so that a compatible pool takes over rather than letting the task stall."""
        engine = engines.least_loaded(request.task, 0)
        return engine if engine is not None else engines.least_loaded(request.task, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobin:
    """Trajectories are dealt out in turn, by their number (AReaL)."""

    sticky: bool = True

    def choose(self, request: Request, engines: EngineView) -> int | None:
        """The engine number (trajectory mod engines) of those that are up."""
        up = engines.up(request.task, 0) or engines.up(request.task, 1)
        return up[request.trajectory % len(up)] if up else None
