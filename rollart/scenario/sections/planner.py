"""The `planner` section: what the best plan is best at, and which decisions are not free."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rollart.scenario.sections.base import Name, NonNegative, Parallel, Positive, Section

_Whole = Annotated[int, Field(ge=0, le=10_000_000)]
_Part = Annotated[float, Field(ge=0, le=1)]


class CountRange(Section):
    """A count, or the least and the most of it."""

    least: _Whole = Field(default=0, description="Least")
    most: _Whole = Field(default=10_000_000, description="Most")


class ShareRange(Section):
    """A part, or the least and the most of it."""

    least: _Part = Field(default=0.0, description="Least")
    most: _Part = Field(default=1.0, description="Most")


def _expand(value: Any) -> Any:
    """A bare number pins a decision."""
    return {"least": value, "most": value} if isinstance(value, int | float) else value


def _ordered(value: Any) -> Any:
    if value is not None and value.least > value.most:
        raise ValueError(f"least {value.least} is above most {value.most}; must not be")
    return value


Counts = Annotated[CountRange | None, BeforeValidator(_expand), AfterValidator(_ordered)]
Shares = Annotated[ShareRange, BeforeValidator(_expand), AfterValidator(_ordered)]
RoleName = Literal["both", "prefill", "decode"]


class TrainerRuleSection(Section):
    """Where and how training may run."""

    pools: list[Name] | None = Field(default=None, min_length=1, description="Pools that may train; default: all")
    devices: Counts = Field(default=None, description="Devices; a number pins them, {least, most} bounds them")
    tensor_parallel: Parallel | None = Field(default=None, description="Pins the tensor parallelism")
    pipeline_parallel: Parallel | None = Field(default=None, description="Pins the pipeline parallelism")
    context_parallel: Parallel | None = Field(default=None, description="Pins the context parallelism")
    expert_parallel: Parallel | None = Field(default=None, description="Pins the expert parallelism")


class EngineRuleSection(Section):
    """Bounds on all engines that fit a description."""

    pool: Name | None = Field(default=None, description="Engines on this pool; default: on any")
    tensor_parallel: Parallel | None = Field(default=None, description="Engines of this tensor parallelism")
    expert_parallel: Parallel | None = Field(default=None, description="Engines of this expert parallelism")
    role: RoleName | None = Field(default=None, description="Engines with this role")
    engines: Counts = Field(default=None, description="How many they are together; 0 forbids them")
    devices: Counts = Field(default=None, description="How many devices they take together")


class TaskRuleSection(Section):
    """Bounds on where a task is generated."""

    task: Name = Field(description="Task")
    pool: Name | None = Field(default=None, description="Engines on this pool; default: on any")
    role: RoleName | None = Field(default=None, description="Engines with this role (decode: of a pair)")
    share: Shares = Field(description="Part of its trajectories that they serve; 0 forbids them, 1 pins it there")


class PlannerSection(Section):
    """What `rollart plan` looks for."""

    objective: Literal["step_time", "cost", "throughput_per_cost"] = Field(
        default="step_time",
        description="Least seconds of a step, least price of a step, or most trained trajectories for the money",
    )
    hourly_budget: Positive | None = Field(
        default=None, description="Most price of an hour: devices that the plan takes, and the environments' cores"
    )
    cost_per_step: Positive | None = Field(default=None, description="Most price of a step")
    deadline_s: Positive | None = Field(default=None, description="Longest step")
    trainer: TrainerRuleSection = Field(default=TrainerRuleSection(), description="Where and how training may run")
    engines: list[EngineRuleSection] = Field(default=[], max_length=1000, description="Bounds on engines")
    tasks: list[TaskRuleSection] = Field(default=[], max_length=1000, description="Bounds on where tasks are generated")
    disaggregate: bool = Field(default=False, description="Pairs of prefill and decode engines may be used")
    environment_slots: Counts = Field(default=None, description="Environment slots; default: at most the placement's")
    staleness: Counts = Field(default=None, description="Staleness bounds to choose from; default: the policy's")
    staleness_penalty: NonNegative = Field(
        default=0.02, description="Part by which each version of staleness beyond the least worsens the objective"
    )
    redundant_members: Counts = Field(
        default=None, description="Redundant members of a group to choose from; default: the policy's"
    )
    redundancy_penalty: NonNegative = Field(
        default=0.01, description="Part by which each redundant member beyond the least worsens the objective"
    )
