"""What a user asks of the planner: an objective, limits, and decisions that are pinned, bounded or forbidden."""

from dataclasses import dataclass
from enum import StrEnum


class Objective(StrEnum):
    """What the best plan is best at."""

    STEP_TIME = "step_time"
    """Seconds of a step; as small as can be."""
    COST = "cost"
    """Price of a step: devices that the plan takes, environment cores, functions; as small as can be."""
    THROUGHPUT_PER_COST = "throughput_per_cost"
    """Trained trajectories for a unit of money; as large as can be."""

    @property
    def maximised(self) -> bool:
        """Whether more is better."""
        return self is Objective.THROUGHPUT_PER_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What no plan may exceed; None: anything goes."""

    budget_per_hour: float | None = None
    """Price of an hour of the devices that the plan takes and of the environments' cores."""
    cost_per_step: float | None = None
    step_s: float | None = None
    """The deadline of a step."""
