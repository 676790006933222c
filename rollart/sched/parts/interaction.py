"""Interaction: whether trajectories advance on their own or in step with their batch."""

from dataclasses import dataclass
from typing import Protocol


class Interaction(Protocol):
    """Decides the pace."""

    @property
    def lockstep(self) -> bool:
        """All trajectories under way finish a generation (or a step) before any goes on."""
        ...

    @property
    def score_at_once(self) -> bool:
        """Rewards are asked for when a trajectory ends, not when the rollout is over."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PerTrajectory:
    """Every trajectory at its own pace, scored as soon as it ends."""

    lockstep: bool = False
    score_at_once: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PerBatch:
    """Batch-wise interaction: a barrier after every generation and every environment step, rewards at the end."""

    lockstep: bool = True
    score_at_once: bool = False
