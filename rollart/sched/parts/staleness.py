"""Staleness rule: which start versions may still run, and still be trained on, at installed version n."""

from dataclasses import dataclass
from typing import Protocol


class StalenessRule(Protocol):
    """Decides what is too old."""

    def oldest(self, installed: int) -> int | None:
        """The oldest start version that may go on when `installed` is on the engines; None: any."""
        ...

    @property
    def bound(self) -> int | None:
        """The staleness that no trained trajectory exceeds; None: not promised."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryTurn:
    """A trajectory must have been started at version >= n - bound, all its life (RollArt; ROLL Flash).

    What becomes of the group of an aborted trajectory is open in the paper. Its members start together, so the
    others are as old: the whole group ends as stale, and a fresh one takes its place.
    """

    bound: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.bound <= 1000:
            raise ValueError(f"bound is {self.bound}; must be from 0 to 1000")

    def oldest(self, installed: int) -> int | None:
        """n - bound."""
        return installed - self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class AtStart:
    """Only admission bounds the staleness (AReaL, and every synchronous policy): what was started is trained on."""

    @property
    def bound(self) -> int | None:
        """Not promised for a single trajectory: the bound holds for the aggregate."""
        return None

    def oldest(self, installed: int) -> int | None:  # noqa: ARG002 - the interface
        """Any."""
        return None
