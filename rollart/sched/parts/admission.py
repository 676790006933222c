"""Admission: how many groups of a task may have been started.

Staleness is kept by admission as much as by eviction: with base `taken`, batch m is consumed while version m - 1 is
installed (update after get_batch), so opening at most `taken + 1 + lookahead` batches keeps every trajectory that is
consumed in order within `lookahead` versions of its start.
"""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What an admission rule may look at."""

    groups_per_batch: int
    opened: int
    """Groups of the task started so far, without those that were dropped."""
    installed: int
    """Version installed on the engines."""
    taken: int
    """Batches the trainer has taken."""


class Admission(Protocol):
    """Decides how many groups of a task may start now."""

    def groups_allowed(self, view: TaskView) -> int:
        """Groups that may start now (0 or less: none)."""
        ...

    @property
    def lookahead(self) -> int:
        """Batches that may be under way beyond the one that is due."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """`opened <= (base + 1 + lookahead) * groups per batch + redundant groups`, per task.

    With base `installed` this is AReaL's bound (2505.24298, capacity with eta = lookahead), applied per task so that
    fast tasks cannot flood the batch; with base `taken` it is the quota of ROLL Flash (2510.11345) with alpha =
    lookahead.
    """

    base: Literal["installed", "taken"] = "taken"
    lookahead: int = 0
    redundant_groups: float = 0.0
    """Groups beyond the quota, as a share of the task's groups per batch."""

    def __post_init__(self) -> None:
        if self.base not in ("installed", "taken"):
            raise ValueError(f"base is {self.base!r}; must be 'installed' or 'taken'")
        if not 0 <= self.lookahead <= 1000:
            raise ValueError(f"lookahead is {self.lookahead}; must be from 0 to 1000")
        if not 0 <= self.redundant_groups <= 10:
            raise ValueError(f"redundant_groups is {self.redundant_groups}; must be from 0 to 10")

    def groups_allowed(self, view: TaskView) -> int:
        """Groups that may start now."""
        base = view.installed if self.base == "installed" else view.taken
        quota = (base + 1 + self.lookahead) * view.groups_per_batch
        return quota + round(self.redundant_groups * view.groups_per_batch) - view.opened
