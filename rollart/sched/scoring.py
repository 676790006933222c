"""Rewards: from the end of an episode to the score, or to giving up on it.

Owns the phases FINISHED, SCORING, SCORE_BACKOFF and SCORED of a trajectory. Tells `Lifecycle` what became of it.
"""

from math import isfinite
from typing import Protocol

from rollart.domain.commands import ScoreTrajectory, SetTimer
from rollart.domain.events import RewardFailed, TrajectoryScored
from rollart.domain.trajectory import Cause
from rollart.sched.orders import Orders
from rollart.sched.parts.registry import Policy
from rollart.sched.state import ControllerState, Phase, Trajectory


class Lifecycle(Protocol):
    """Whom rollout and scoring tell about their trajectories."""

    def scored(self, trajectory: Trajectory) -> None:
        """The reward is known."""
        ...

    def gave_up(self, trajectory: Trajectory) -> None:
        """It failed more often than the recovery rule retries."""
        ...


class Scoring:
    """Asks for rewards, at once or when the rollout is over, and again after failures."""

    __slots__ = ("_at_once", "_orders", "_recovery", "_state", "lifecycle")

    lifecycle: Lifecycle

    def __init__(self, state: ControllerState, policy: Policy, orders: Orders) -> None:
        self._state = state
        self._orders = orders
        self._recovery = policy.recovery
        self._at_once = policy.interaction.score_at_once

    def finished(self, trajectory: Trajectory) -> None:
        """The episode is over."""
        trajectory.phase = Phase.FINISHED
        if self._at_once:
            self.score(trajectory)
        else:
            self._state.unscored.append(trajectory.id)
            self.settle()

    def settle(self) -> None:
        """Where rewards wait for the end of the rollout: ask for them once nothing is under way or queued."""
        state = self._state
        if not state.unscored or state.active:
            return
        if any(trajectory.phase is Phase.QUEUED for trajectory in state.trajectories.values()):
            return
        unscored, state.unscored = state.unscored, []
        for trajectory_id in unscored:
            self.score(state.trajectories[trajectory_id])

    def score(self, trajectory: Trajectory) -> None:
        """Ask for the reward."""
        trajectory.phase = Phase.SCORING
        trajectory.command = self._orders.issue(
            ScoreTrajectory,
            trajectory.id,
            trajectory=trajectory.id,
            attempt=trajectory.score_failures,
            timeout_s=self._recovery.reward_timeout_s,
        )

    def on_scored(self, event: TrajectoryScored) -> None:
        """The trajectory is complete, if the reward is a finite number; any other has failed."""
        if not isfinite(event.reward):
            self.on_failed(RewardFailed(command_id=event.command_id, cause=Cause.ERROR))
            return
        trajectory = self._orders.answered(event.command_id)
        if trajectory is not None:
            trajectory.reward = event.reward
            trajectory.phase = Phase.SCORED
            trajectory.command = -1
            self.lifecycle.scored(trajectory)

    def on_failed(self, event: RewardFailed) -> None:
        """Ask again after the back-off."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        trajectory.score_failures += 1
        delay_s = self._recovery.retry_after_s(trajectory.score_failures)
        if delay_s is None:
            self.lifecycle.gave_up(trajectory)
            return
        trajectory.phase = Phase.SCORE_BACKOFF
        trajectory.command = self._orders.issue(SetTimer, trajectory.id, delay_s=delay_s)
