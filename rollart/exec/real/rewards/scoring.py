"""Rewards from the driver's side: what the environment said, or what a function answers."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from rollart.domain.commands import ScoreTrajectory
from rollart.domain.events import Event, RewardFailed, TrajectoryScored
from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episode, Episodes
from rollart.exec.real.failures import Why
from rollart.modelled.clock import Clock
from rollart.runlog.samples import RewardSample


class RewardFailure(Exception):
    """A reward could not be had; the controller decides what follows."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause


class Resource(Protocol):
    """What computes rewards outside the environment, and what it has taken."""

    billed_s: float
    """Seconds in which functions were at work."""
    cold_starts: int
    """Requests that were the first of their process."""

    async def start(self) -> None:
        """Get ready to be asked."""
        ...

    async def close(self) -> None:
        """Give up what it holds."""
        ...


class RewardFunction(Protocol):
    """Gives rewards that the environment does not."""

    @property
    def service(self) -> Resource:
        """Who computes them."""
        ...

    async def score(self, episode: Episode, timeout_s: float) -> float:
        """The reward; raises RewardFailure."""
        ...


class Scoring:
    """Carries out ScoreTrajectory.

    Without a function the reward is the sum of what the environment gave; a trajectory that was cut short keeps what
    it had earned by then.
    """

    def __init__(
        self,
        functions: Mapping[str, RewardFunction],
        episodes: Episodes,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
        report: Callable[[Event], None],
        why: Why,
        keep: Callable[[int, Episode], None],
    ) -> None:
        """`functions`: by task, where the reward is not the environment's. `keep` saves a scored episode.

        `why` is told the reason of every failure.
        """
        self._keep = keep
        self._functions = functions
        self._episodes = episodes
        self._spawn = spawn
        self._clock = clock
        self._report = report
        self._why = why
        self._busy_s = 0.0

    async def start(self) -> None:
        """Get everything ready that gives rewards."""
        await asyncio.gather(*(function.service.start() for function in self._functions.values()))

    def sample(self) -> RewardSample:
        """Counters since the start."""
        services = [function.service for function in self._functions.values()]
        return RewardSample(
            busy_s=self._busy_s,
            billed_s=sum(service.billed_s for service in services),
            cold_starts=sum(service.cold_starts for service in services),
        )

    def score(self, command: ScoreTrajectory) -> None:
        """Find the reward."""
        episode = self._episodes[command.trajectory]
        function = self._functions.get(episode.task)
        if function is None:
            self._scored(command, episode, episode.reward)
        else:
            self._spawn(self._ask(function, command, episode))

    async def _ask(self, function: RewardFunction, command: ScoreTrajectory, episode: Episode) -> None:
        began_s = self._clock.now
        try:
            reward = await function.score(episode, command.timeout_s)
        except RewardFailure as failure:
            self._why(f"a reward of {episode.task!r}", str(failure))
            self._report(RewardFailed(command_id=command.id, cause=failure.cause))
            return
        finally:
            self._busy_s += self._clock.now - began_s
        self._scored(command, episode, reward)

    def _scored(self, command: ScoreTrajectory, episode: Episode, reward: float) -> None:
        episode.score = reward
        self._keep(command.trajectory, episode)
        self._report(TrajectoryScored(command_id=command.id, reward=reward))

    async def stop(self) -> None:
        """Close all functions."""
        for function in self._functions.values():
            await function.service.close()
