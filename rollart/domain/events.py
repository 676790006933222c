"""Events: facts that have happened, reported by a driver to the controller.

`command_id` names the command that an event answers. Events carry what a real system knows when it happens; future
lengths are never among it. Durations are measured by the worker that reports.
"""

import msgspec

from rollart.domain.trajectory import Cause


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """A fact; its time is given beside it."""


class Answer(Event, frozen=True, kw_only=True, gc=False, tag=True):
    """A fact that answers a command."""

    command_id: int


class RunStarted(Event, frozen=True, kw_only=True, gc=False, tag=True):
    """The workers of the plan are up, engines hold version 0."""


class RunResumed(Event, frozen=True, kw_only=True, gc=False, tag=True):
    """The driver was started again: all workers are gone, and with them all that was open; scored data is safe."""


# Environments


class EnvironmentReady(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """Reset is done; the first prompt is there."""

    prompt_tokens: int
    shared_tokens: int
    """Leading tokens of the prompt that every member of the group has."""


class EnvironmentStepped(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The action was carried out."""

    observation_tokens: int
    kept_tokens: int | None
    """Leading tokens of the context that survive compaction or stripping; None: all of it."""
    done: bool
    """The episode is over."""


class EnvironmentFailed(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A reset or a step failed; the environment is unusable."""

    cause: Cause


class EnvironmentClosed(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The environment is gone and its slot free."""


# Generation


class TurnGenerated(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A turn is complete. The times add up to the time since the engine got the request."""

    output_tokens: int
    """Tokens made by this command (those made before a migration are not among them)."""
    cached_tokens: int
    """Prompt tokens found in the prefix cache."""
    recomputed_tokens: int
    """Tokens computed again after a preemption, a weight update or a lost cache."""
    preemptions: int
    truncated: bool
    """It ended at `max_tokens`, not by itself."""
    queue_s: float
    prefill_s: float
    decode_s: float


class GenerationAborted(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The target of an AbortGeneration is stopped."""

    output_tokens: int
    """Tokens that the target had made."""


# Rewards


class TrajectoryScored(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The reward is known."""

    reward: float


class RewardFailed(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The reward could not be computed."""

    cause: Cause


# Training, weights, engines


class TrainingEnded(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A training step is done; its weights are on the trainer's devices."""

    version: int


class TrainerLost(Event, frozen=True, kw_only=True, gc=False, tag=True):
    """The trainer died, with its step and its push; reported once for each incarnation."""

    incarnation: int


class TrainerStarted(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A restarted trainer has loaded its checkpoint."""


class WeightsPushed(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A version is complete in the store."""

    version: int


class WeightsPulled(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A version lies on an engine's host."""

    version: int


class EngineSuspended(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The engine starts no further iteration."""


class EngineUpdated(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The engine has a version installed."""

    version: int


class EngineResumed(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The engine generates again."""


class EngineStarted(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """A restarted engine is up, suspended, without current weights."""


class EngineLost(Event, frozen=True, kw_only=True, gc=False, tag=True):
    """An engine died, with all that it held; tokens streamed before are saved."""

    engine: int
    incarnation: int
    commands: tuple[int, ...]
    """GenerateTurn commands that were open on it."""
    saved_tokens: tuple[int, ...]
    """Tokens that each of them had made."""


class TimerFired(Answer, frozen=True, kw_only=True, gc=False, tag=True):
    """The delay of a SetTimer is over."""


EVENTS: tuple[type[Event], ...] = (
    RunStarted,
    RunResumed,
    EnvironmentReady,
    EnvironmentStepped,
    EnvironmentFailed,
    EnvironmentClosed,
    TurnGenerated,
    GenerationAborted,
    TrajectoryScored,
    RewardFailed,
    TrainingEnded,
    TrainerLost,
    TrainerStarted,
    WeightsPushed,
    WeightsPulled,
    EngineSuspended,
    EngineUpdated,
    EngineResumed,
    EngineStarted,
    EngineLost,
    TimerFired,
)
"""Every event, in the order of the tables in docs/control-plane.md."""
