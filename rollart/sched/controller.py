"""The controller: `commands = controller.handle(event, now)`.

Owns every decision of a run and nothing else: no clock, no input or output, no driver. Wires the components that own
the parts of its state (rollout, buffer, weights, loop, fleet) and hands each event to the one that it concerns.

Invariants: a trajectory ends exactly once; versions never go back; an answer to a command that is not open any more
changes nothing; the same events in the same order give the same commands.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from rollart.domain.commands import Command
from rollart.domain.errors import InvariantError, RunLogError
from rollart.domain.events import (
    EngineLost,
    EngineResumed,
    EngineStarted,
    EngineSuspended,
    EngineUpdated,
    EnvironmentClosed,
    EnvironmentFailed,
    EnvironmentReady,
    EnvironmentStepped,
    Event,
    GenerationAborted,
    RewardFailed,
    RunResumed,
    RunStarted,
    TimerFired,
    TrainerLost,
    TrainerStarted,
    TrainingEnded,
    TrajectoryScored,
    TurnGenerated,
    WeightsPulled,
    WeightsPushed,
)
from rollart.sched.buffer import Buffer
from rollart.sched.config import ControllerConfig
from rollart.sched.fleet import Fleet
from rollart.sched.loop import TrainingLoop
from rollart.sched.orders import Orders
from rollart.sched.parts import build
from rollart.sched.resumption import Resumption
from rollart.sched.rollout import Rollout
from rollart.sched.scoring import Scoring
from rollart.sched.state import ControllerState, Engine, TaskState
from rollart.sched.weights import Weights

Handler = Callable[[Any], None]


class Controller:
    """The control plane of one run."""

    def __init__(self, config: ControllerConfig, state: ControllerState | None = None) -> None:
        """Start afresh, or go on from a restored state; ScenarioError if the policy is wrong."""
        self.config = config
        self.state = state or ControllerState(
            tasks=[TaskState() for _ in config.tasks],
            engines=[Engine() for _ in config.engine_classes],
        )
        policy = build(config.policy)
        self.policy = policy
        orders = self._orders = Orders(self.state)
        fleet = Fleet(config, self.state, policy)
        scoring = Scoring(self.state, policy, orders)
        rollout = Rollout(config, self.state, policy, orders, fleet, scoring)
        self._buffer = Buffer(config, self.state, policy, rollout)
        self._weights = Weights(config, self.state, policy, orders, fleet, rollout)
        self._loop = TrainingLoop(config, self.state, policy, orders, self._buffer, self._weights)
        scoring.lifecycle = self._buffer
        self._weights.loop = self._loop
        self._rollout, self._scoring = rollout, scoring
        self._resumption = Resumption(config, self.state, orders, fleet, self._buffer, self._loop)
        self._handlers = self._table()

    def _table(self) -> dict[type[Event], Handler]:
        rollout, weights = self._rollout, self._weights
        return {
            RunStarted: lambda _: self._loop.start(),
            RunResumed: lambda _: self._resumption.resume(),
            EnvironmentReady: rollout.on_ready,
            EnvironmentStepped: rollout.on_stepped,
            EnvironmentFailed: rollout.on_failed,
            EnvironmentClosed: rollout.on_closed,
            TurnGenerated: rollout.on_generated,
            GenerationAborted: rollout.on_aborted,
            TrajectoryScored: self._on_scored,
            RewardFailed: self._scoring.on_failed,
            TrainingEnded: self._loop.on_trained,
            TrainerLost: self._loop.trainer_lost,
            TrainerStarted: self._loop.trainer_started,
            WeightsPushed: weights.answered,
            WeightsPulled: weights.answered,
            EngineSuspended: weights.answered,
            EngineUpdated: weights.updated,
            EngineResumed: weights.answered,
            EngineStarted: weights.started,
            EngineLost: weights.lost,
            TimerFired: self._on_timer,
        }

    def handle(self, event: Event, now: float) -> list[Command]:
        """The commands that follow from a fact.

        `now` is the driver's time in seconds; it never goes back. No decision depends on it yet, so that a log
        replays whatever its clock was.
        """
        del now
        if self.state.stopped:
            return []
        out: list[Command] = []
        self._orders.out = out
        try:
            handler = self._handlers[type(event)]
        except KeyError:
            raise InvariantError(f"no handler for the event {type(event).__name__}") from None
        handler(event)
        return out

    def _on_scored(self, event: TrajectoryScored) -> None:
        self._scoring.on_scored(event)
        self._loop.get_batch()

    def _on_timer(self, event: TimerFired) -> None:
        trajectory = self.state.open.pop(event.command_id, None)
        if trajectory is not None:
            self._rollout.on_timer(trajectory)

    # The state as plain data

    def snapshot(self) -> bytes:
        """The whole state as JSON."""
        return msgspec.json.encode(self.state)

    @classmethod
    def restore(cls, config: ControllerConfig, snapshot: bytes) -> "Controller":
        """A controller that goes on where the snapshot was taken; RunLogError if it is no snapshot."""
        try:
            state = msgspec.json.decode(snapshot, type=ControllerState)
        except msgspec.DecodeError as error:
            raise RunLogError(f"controller snapshot: {error}") from None
        return cls(config, state)
