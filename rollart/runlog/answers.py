"""Which events may answer which command."""

from rollart.domain import commands, events
from rollart.domain.commands import Command
from rollart.domain.events import Event

ANSWERS: dict[type[Command], tuple[type[Event], ...]] = {
    commands.ResetEnvironment: (events.EnvironmentReady, events.EnvironmentFailed),
    commands.StepEnvironment: (events.EnvironmentStepped, events.EnvironmentFailed),
    commands.CloseEnvironment: (events.EnvironmentClosed,),
    commands.GenerateTurn: (events.TurnGenerated,),
    commands.AbortGeneration: (events.GenerationAborted,),
    commands.ScoreTrajectory: (events.TrajectoryScored, events.RewardFailed),
    commands.TrainBatch: (events.TrainingEnded,),
    commands.RestartTrainer: (events.TrainerStarted,),
    commands.PushWeights: (events.WeightsPushed,),
    commands.PullWeights: (events.WeightsPulled,),
    commands.SuspendEngine: (events.EngineSuspended,),
    commands.UpdateEngine: (events.EngineUpdated,),
    commands.ResumeEngine: (events.EngineResumed,),
    commands.RestartEngine: (events.EngineStarted,),
    commands.SetTimer: (events.TimerFired,),
}
"""Every command that is answered at all."""
