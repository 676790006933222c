"""A reward that something else computes: what it is told, what its answer must be, and how often it is asked at once.

Each attempt is one request; whether another follows is the controller's decision.
"""

import asyncio
import math
from typing import Any, Protocol

from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episode
from rollart.exec.real.rewards.scoring import Resource, RewardFailure
from rollart.exec.real.tokens import Tokenizer

Request = dict[str, Any]
"""{"task", "text", "answer", "earned"}: the whole dialogue, what the agent said, and what the environment gave."""


class Service(Resource, Protocol):
    """Who computes the reward."""

    async def ask(self, request: Request) -> float:
        """The reward, a finite number; raises RewardFailure. Cancelled where it takes too long."""
        ...


class RemoteReward:
    """Asks a service, with so many requests at once."""

    def __init__(self, service: Service, tokenizer: Tokenizer, concurrency: int) -> None:
        self.service = service
        self._tokenizer = tokenizer
        self._limit = asyncio.Semaphore(concurrency)

    async def score(self, episode: Episode, timeout_s: float) -> float:
        """Ask once; the time-out counts from now, waiting for a free place included. Raises RewardFailure."""
        try:
            async with asyncio.timeout(timeout_s), self._limit:
                return await self.service.ask(request_of(episode, self._tokenizer))
        except TimeoutError as error:
            raise RewardFailure(Cause.TIMEOUT, "no answer in time") from error


def request_of(episode: Episode, tokenizer: Tokenizer) -> Request:
    """What is told about an episode."""
    said = [token for token, made in zip(episode.tokens, episode.made, strict=True) if made]
    return {
        "task": episode.task,
        "text": tokenizer.text(episode.tokens),
        "answer": tokenizer.text(said),
        "earned": episode.reward,
    }


def finite(value: Any) -> float:
    """A reward; ValueError for whatever is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the answer is no finite number: {str(value)[:100]}")
    return float(value)
