"""What a controller is told once: tasks, engines, limits and policy, as plain data that a run log can hold."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rollart.domain.plan import Role


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One task, as the controller sees it."""

    name: str
    group_size: int
    groups_per_batch: int
    max_turns: int
    suited: tuple[int, ...]
    """Engine classes that suit the task, equally good."""
    shares: tuple[float, ...] = ()
    """Of the task's trajectories under way, by suited class; empty: divided by load."""
    fallback: tuple[int, ...] = ()
    """Engine classes that serve it while no suited engine is up."""


class EngineClass(msgspec.Struct, frozen=True, kw_only=True):
    """Equal engines: an engine group of the placement."""

    name: str
    role: Role
    engines: int
    weight: float = 1.0
    """Relative speed of one engine; load is balanced in proportion."""
    time_shared: bool = False


class ControllerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that decisions depend on, besides the events."""

    tasks: tuple[TaskConfig, ...]
    classes: tuple[EngineClass, ...]
    """Engines are numbered through: those of class 0 first."""
    context_limit: int
    steps: int
    environment_slots: int
    policy_name: str
    policy: Mapping[str, Mapping[str, Any]]
    """Slot -> {kind, parameters}, complete (see `rollart.sched.presets.resolve`)."""

    @property
    def engine_classes(self) -> list[int]:
        """Class index of each engine."""
        return [index for index, group in enumerate(self.classes) for _ in range(group.engines)]
