"""The stages of a step, and which command belongs to which."""

from enum import StrEnum

from rollart.domain.commands import (
    AbortGeneration,
    CloseEnvironment,
    Command,
    GenerateTurn,
    PullWeights,
    PushWeights,
    ResetEnvironment,
    RestartEngine,
    RestartTrainer,
    ResumeEngine,
    ScoreTrajectory,
    SetTimer,
    StepEnvironment,
    SuspendEngine,
    TrainBatch,
    UpdateEngine,
)


class Stage(StrEnum):
    """What a step spends its time on, in the order of reports."""

    GENERATION = "generation"
    ENVIRONMENT = "environment"
    REWARD = "reward"
    TRAINING = "training"
    WEIGHT_SYNC_EXPOSED = "weight_sync_exposed"
    WAITING_FOR_BATCH = "waiting_for_batch"


STAGE_OF: dict[type[Command], Stage] = {
    ResetEnvironment: Stage.ENVIRONMENT,
    StepEnvironment: Stage.ENVIRONMENT,
    CloseEnvironment: Stage.ENVIRONMENT,
    GenerateTurn: Stage.GENERATION,
    AbortGeneration: Stage.GENERATION,
    ScoreTrajectory: Stage.REWARD,
    TrainBatch: Stage.TRAINING,
    RestartTrainer: Stage.TRAINING,
    PushWeights: Stage.WEIGHT_SYNC_EXPOSED,
    PullWeights: Stage.WEIGHT_SYNC_EXPOSED,
    SuspendEngine: Stage.WEIGHT_SYNC_EXPOSED,
    UpdateEngine: Stage.WEIGHT_SYNC_EXPOSED,
    ResumeEngine: Stage.WEIGHT_SYNC_EXPOSED,
    RestartEngine: Stage.WEIGHT_SYNC_EXPOSED,
    SetTimer: Stage.WAITING_FOR_BATCH,
}
"""Stage of the time between a command and its answer; commands without an answer have none."""
