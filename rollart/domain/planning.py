"""What a user asks of the planner: an objective, limits, and decisions that are pinned, bounded or forbidden."""

from dataclasses import dataclass
from enum import StrEnum

from rollart.domain.plan import Role


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values from `least` to `most`, both allowed; equal ones pin a decision."""

    least: float
    most: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerRule:
    """Where and how training may run; None: any."""

    pools: tuple[str, ...] | None = None
    devices: Range | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRule:
    """Bounds on the engines of all kinds that it describes; None: whichever."""

    pool: str | None = None
    tensor_parallel: int | None = None
    expert_parallel: int | None = None
    role: Role | None = None
    engines: Range | None = None
    devices: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRule:
    """Bounds on the part of a task's trajectories that engines of a description generate."""

    task: str
    pool: str | None = None
    role: Role | None = None
    share: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All that a scenario asks of the planner."""

    objective: Objective = Objective.STEP_TIME
    limits: Limits = Limits()
    trainer: TrainerRule = TrainerRule()
    engines: tuple[EngineRule, ...] = ()
    tasks: tuple[TaskRule, ...] = ()
    roles: tuple[Role, ...] = (Role.BOTH,)
    """Roles that engines may have; prefill and decode engines come in pairs."""
    environment_slots: Range | None = None
    """None: those of the placement."""
    staleness: Range | None = None
    """Bounds of staleness to choose from; None: the policy's."""
    staleness_penalty: float = 0.0
    """Part by which each version beyond the least makes a plan's objective worse."""
    redundant_members: Range | None = None
    """Members beyond a group's size to choose from; None: the policy's."""
    redundancy_penalty: float = 0.0
    """Part by which each redundant member beyond the least makes a plan's objective worse."""
