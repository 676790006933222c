"""A task: one domain of prompts, with its environment and its reward."""

from dataclasses import dataclass, field
from enum import StrEnum


class RewardKind(StrEnum):
    """Who computes a reward."""

    SERVERLESS = "serverless"
    """A function of the cluster's serverless service."""
    LOCAL = "local"
    """A fixed number of workers on reserved CPU cores."""
    ENGINE = "engine"
    """A judge model on an engine of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentNeeds:
    """What one environment of a task takes."""

    cores: float = 1.0
    """CPU cores that a reset or a step keeps busy."""
    image_bytes: float = 0.0
    """Container image, pulled once per host; 0 where the recorded reset times hold the pull already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardNeeds:
    """How a task's trajectories are scored."""

    kind: RewardKind = RewardKind.SERVERLESS
    workers: int = 8
    """Concurrent scorers where the kind is LOCAL."""
    engine_group: str | None = None
    """Engine group that judges where the kind is ENGINE."""
    judge_tokens: int = 64
    """Tokens that a judge writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One domain of prompts."""

    name: str
    share: float
    """Part of each batch's trajectories, in (0, 1]; the shares of a scenario add up to 1."""
    group_size: int
    max_turns: int
    environment: EnvironmentNeeds = field(default_factory=EnvironmentNeeds)
    reward: RewardNeeds = field(default_factory=RewardNeeds)
