"""The `tasks` and `training` sections: what is trained on, and what a training step does."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rollart.scenario.sections.base import Count, FileName, Name, NonNegative, Positive, Section, Share
from rollart.scenario.sections.execution import TaskExecutionSection


class WorkloadSection(Section):
    """Where trajectories come from: drawn from a profile, or recorded in a trace."""

    profile: FileName | None = Field(default=None, description="Profile file to draw trajectories from")
    task: str | None = Field(default=None, description="Task of the profile or the trace; default: the task's own name")
    trace: FileName | None = Field(
        default=None, description="Trace file with recorded trajectories, in place of `profile`"
    )
    times: FileName | None = Field(default=None, description="Profile with the times that the trace lacks")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.profile is None) == (self.trace is None):
            raise ValueError("must have either profile or trace, and not both")
        if self.times is not None and self.trace is None:
            raise ValueError("has times without a trace; a profile has times of its own")
        return self


class EnvironmentSection(Section):
    """What one environment takes."""

    cores: Positive = Field(default=1.0, description="CPU cores that a reset or a step keeps busy")
    image_gb: NonNegative = Field(
        default=0.0, description="Container image, pulled once per host; 0 where the reset times hold the pull already"
    )


class RewardSection(Section):
    """How trajectories are scored."""

    kind: Literal["serverless", "local", "engine"] = Field(
        default="serverless", description="A function, fixed local workers, or a judge model on engines"
    )
    workers: Count = Field(default=8, description="Concurrent scorers of kind local")
    engine_group: Name | None = Field(default=None, description="Engine group with role judge, for kind engine")
    judge_tokens: Count = Field(default=64, description="Tokens that a judge writes")

    @model_validator(mode="after")
    def _judge_is_named(self) -> Self:
        if (self.kind == "engine") != (self.engine_group is not None):
            raise ValueError("must name engine_group where kind is engine, and only there")
        return self


class TaskSection(Section):
    """One domain of prompts."""

    name: Name = Field(description="Name of the task")
    workload: WorkloadSection = Field(description="Where its trajectories come from")
    share: Share | None = Field(
        default=None, description="Part of each batch's trajectories; all or no task have one; default: equal shares"
    )
    group_size: Annotated[int, Field(ge=1, le=100_000)] = Field(default=8, description="Trajectories of one prompt")
    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=200, description="Turns after which a trajectory is cut"
    )
    environment: EnvironmentSection = Field(default=EnvironmentSection(), description="What one environment takes")
    reward: RewardSection = Field(default=RewardSection(), description="How trajectories are scored")
    execution: TaskExecutionSection | None = Field(default=None, description="How a real run carries it out")


class TrainingSection(Section):
    """What a training step has to do."""

    batch_size: Annotated[int, Field(ge=1, le=10_000_000)] = Field(description="Trajectories of a step, over all tasks")
    context_limit: Annotated[int, Field(ge=2, le=100_000_000)] = Field(
        description="Most tokens of a trajectory, prompts and responses together"
    )
    reference_pass: bool = Field(default=True, description="Log-probs of a frozen reference model, for a KL term")
    behaviour_pass: bool = Field(default=True, description="Log-probs of the behaviour policy, computed again")
    micro_batch_tokens: Count = Field(default=32768, description="Token budget of a packed micro-batch per rank")
    recompute_activations: bool = Field(default=True, description="Recompute activations in the backward pass")
