"""What an environment is: reset, step, close; it speaks text or token ids, and says when an episode is over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the agent sees next."""

    text: str | list[int]
    """Text, or token ids that are taken as they are."""
    reward: float = 0.0
    """Earned by the last action; a trajectory's reward is the sum."""
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What the agent did."""

    text: str
    tokens: list[int]


class Environment(Protocol):
    """One environment; made with the task's arguments, used for one episode after another."""

    def reset(self, seed: int, member: int) -> Observation:
        """Begin an episode. The members of a group have the same seed: their first observation must be the same."""
        ...

    def step(self, action: Action) -> Observation:
        """Carry out a turn's action."""
        ...

    def close(self) -> None:
        """Give up what the environment holds, in whatever state it is."""
        ...


Arguments = Mapping[str, Any]
