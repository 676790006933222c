"""Commands: orders of the controller that a driver carries out.

Every command has an `id`, unique in a run and rising. A retried order is a new command. A worker command names the
incarnation it is addressed to. `EndTrajectory`, `CancelTimer` and `StopRun` need no answer; every other command is
answered by exactly one event, unless it was aborted, the worker died, or the run stopped.
"""

from enum import StrEnum

import msgspec

from rollart.domain.trajectory import End


class WeightSource(StrEnum):
    """Where an engine finds the version that it installs."""

    HOST = "host"
    """On its own host: it was pulled before."""
    STORE = "store"
    """In the store: it is pulled first."""
    BROADCAST = "broadcast"
    """In its receive buffer: the trainer has just broadcast it."""


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """An order with its id."""

    id: int


# Environments


class ResetEnvironment(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Make an environment for one attempt at a trajectory; answered by EnvironmentReady or EnvironmentFailed."""

    trajectory: int
    task: str
    prompt: int
    """Index of the prompt within its task; the members of a group share it."""
    group: int
    member: int
    attempt: int
    version: int
    """Version installed on the engines when the attempt starts: its start version."""
    timeout_s: float


class StepEnvironment(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Act on an environment; answered by EnvironmentStepped or EnvironmentFailed."""

    trajectory: int
    turn: int
    """Index of the turn whose action is carried out, from 0."""
    timeout_s: float


class CloseEnvironment(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Take an environment down, whatever it is doing, and free its slot; answered by EnvironmentClosed."""

    trajectory: int


# Generation


class GenerateTurn(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Generate one turn; answered by TurnGenerated."""

    trajectory: int
    group: int
    turn: int
    engine: int
    incarnation: int
    prefill_engine: int | None
    """Engine that computes the prompt where prefill and decode are disaggregated."""
    context_tokens: int
    """The whole prompt: history, new observation, and tokens of this turn that were made before a migration."""
    reusable_tokens: int
    """Leading tokens that equal what this trajectory held after its last generation."""
    shared_tokens: int
    """Leading tokens that the members of the group share."""
    partial_tokens: int
    """Tokens of this turn that are already made and part of `context_tokens`."""
    max_tokens: int
    """Further tokens that the context limit allows, at least 1."""


class AbortGeneration(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Stop the generation `target`; answered by GenerationAborted. A later answer to `target` is ignored."""

    target: int
    trajectory: int
    engine: int
    incarnation: int


# Rewards


class ScoreTrajectory(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Compute the reward of a finished trajectory; answered by TrajectoryScored or RewardFailed."""

    trajectory: int
    attempt: int
    timeout_s: float


class EndTrajectory(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """The trajectory has ended: drop all that is held for it. No answer."""

    trajectory: int
    end: End


# Training


class TrainBatch(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Train on a batch and make `version`; answered by TrainingEnded."""

    step: int
    version: int
    """Version that the step makes."""
    installed: int
    """Version installed on the engines at get_batch."""
    trajectories: tuple[int, ...]
    start_versions: tuple[int, ...]
    """Start version of each trajectory; its staleness is `installed` less this."""
    context_tokens: tuple[int, ...]
    """Prompt and response tokens of each trajectory."""
    checkpoint: bool = True
    """Save the version that the step makes, before the answer; the checkpoint before it is kept until the next step."""


class RestartTrainer(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Start `incarnation` of the lost trainer from a checkpoint; answered by TrainerStarted."""

    incarnation: int
    version: int
    """Version of the checkpoint; steps that were made since are void."""


# Weights and engines


class PushWeights(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Gather, convert and publish the weights of a version; answered by WeightsPushed."""

    version: int
    broadcast: bool
    """Straight to the suspended engines, not to the store."""


class EngineCommand(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """An order to one incarnation of one engine."""

    engine: int
    incarnation: int


class PullWeights(EngineCommand, frozen=True, kw_only=True, gc=False, tag=True):
    """Fetch a version to the engine's host beside its work; answered by WeightsPulled."""

    version: int


class SuspendEngine(EngineCommand, frozen=True, kw_only=True, gc=False, tag=True):
    """Finish the running iteration and start no other; answered by EngineSuspended."""

    release_memory: bool
    """Also give the device memory back, since the trainer shares the devices."""


class UpdateEngine(EngineCommand, frozen=True, kw_only=True, gc=False, tag=True):
    """Install a version; answered by EngineUpdated."""

    version: int
    source: WeightSource


class ResumeEngine(EngineCommand, frozen=True, kw_only=True, gc=False, tag=True):
    """Go on generating; answered by EngineResumed."""


class RestartEngine(EngineCommand, frozen=True, kw_only=True, gc=False, tag=True):
    """Start `incarnation` of a lost engine on its devices, suspended; answered by EngineStarted."""


# Time, and the end


class SetTimer(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Report TimerFired after `delay_s`."""

    delay_s: float


class CancelTimer(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """Forget the timer `target`. No answer."""

    target: int


class StopRun(Command, frozen=True, kw_only=True, gc=False, tag=True):
    """The last step is done: stop all work. Commands that are still open are void. No answer."""


COMMANDS: tuple[type[Command], ...] = (
    ResetEnvironment,
    StepEnvironment,
    CloseEnvironment,
    GenerateTurn,
    AbortGeneration,
    ScoreTrajectory,
    EndTrajectory,
    TrainBatch,
    RestartTrainer,
    PushWeights,
    PullWeights,
    SuspendEngine,
    UpdateEngine,
    ResumeEngine,
    RestartEngine,
    SetTimer,
    CancelTimer,
    StopRun,
)
"""Every command, in the order of the tables in docs/control-plane.md."""

UNANSWERED: frozenset[type[Command]] = frozenset({EndTrajectory, CancelTimer, StopRun})
"""Commands that no event answers."""
