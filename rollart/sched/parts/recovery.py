"""Recovery: time-outs, retries and what becomes of lost engines."""

from dataclasses import dataclass
from typing import Protocol


class Recovery(Protocol):
    """Decides what follows a failure."""

    @property
    def reset_timeout_s(self) -> float:
        """Longest reset."""
        ...

    @property
    def step_timeout_s(self) -> float:
        """Longest environment step."""
        ...

    @property
    def reward_timeout_s(self) -> float:
        """Longest scoring."""
        ...

    @property
    def migrate(self) -> bool:
        """A lost engine's requests go on elsewhere with the tokens they had made."""
        ...

    @property
    def checkpoint_every(self) -> int:
        """Training steps from one checkpoint to the next."""
        ...

    @property
    def max_trainer_losses(self) -> int:
        """Losses of the trainer without a finished step between them, at most."""
        ...

    def retry_after_s(self, failures: int) -> float | None:
        """Delay before the attempt that follows the given number of failures; None: give up."""
        ...

    def restart_engine(self, losses: int) -> bool:
        """Whether an engine that was lost `losses` times is started again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Retry with exponential backoff; restart a lost engine in place, remove it after repeated losses.

    A lost trainer is restarted from its last checkpoint, unless it is lost again and again without finishing a step.
    """

    reset_timeout_s: float = 600.0
    step_timeout_s: float = 600.0
    reward_timeout_s: float = 120.0
    max_attempts: int = 4
    backoff_s: float = 1.0
    factor: float = 2.0
    max_backoff_s: float = 60.0
    migrate: bool = True
    max_engine_restarts: int = 1000
    checkpoint_every: int = 1
    max_trainer_losses: int = 10

    def __post_init__(self) -> None:
        for name in ("reset_timeout_s", "step_timeout_s", "reward_timeout_s"):
            if not 0 < getattr(self, name) < 1e9:
                raise ValueError(f"{name} is {getattr(self, name)}; must be above 0")
        if not 1 <= self.max_attempts <= 1000:
            raise ValueError(f"max_attempts is {self.max_attempts}; must be from 1 to 1000")
        for name in ("checkpoint_every", "max_trainer_losses"):
            if not 1 <= getattr(self, name) <= 1_000_000:
                raise ValueError(f"{name} is {getattr(self, name)}; must be from 1 to 1000000")
        if not (0 <= self.backoff_s <= self.max_backoff_s < 1e9 and 1 <= self.factor <= 100):
            raise ValueError("need 0 <= backoff_s <= max_backoff_s and 1 <= factor <= 100")

    def retry_after_s(self, failures: int) -> float | None:
        """`backoff_s * factor^(failures - 1)`, at most `max_backoff_s`."""
        if failures >= self.max_attempts:
            return None
        return float(min(self.max_backoff_s, self.backoff_s * self.factor ** min(failures - 1, 64)))

    def restart_engine(self, losses: int) -> bool:
        """True for the first `max_engine_restarts` losses."""
        return losses <= self.max_engine_restarts
