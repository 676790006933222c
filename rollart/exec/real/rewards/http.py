"""A reward function over HTTP: any function service, JSON in, JSON out.

Request: {"task", "text", "answer", "earned"}: the whole dialogue, what the agent said, and what the environment gave.
Answer: {"reward": number}. Each attempt is one request; whether another follows is the controller's decision.
"""

import asyncio
import json
import math
import os
from typing import Any

import aiohttp

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episode
from rollart.exec.real.rewards.scoring import RewardFailure
from rollart.exec.real.tokens import Tokenizer

MOST_BYTES = 1_000_000
"""Of an answer that is read."""


class HttpReward:
    """Asks one URL, at most `reward_concurrency` requests at once."""

    def __init__(self, task: TaskExecution, tokenizer: Tokenizer) -> None:
        self._task = task
        self._tokenizer = tokenizer
        self._limit = asyncio.Semaphore(task.reward_concurrency)
        self._session: aiohttp.ClientSession | None = None
        self._headers = {}
        if task.reward_secret is not None:
            secret = os.environ.get(task.reward_secret)
            if not secret:
                raise ScenarioError(
                    f"tasks.{task.task}.execution.reward_secret: environment variable {task.reward_secret} is not set"
                )
            self._headers = {"Authorization": f"Bearer {secret}"}

    async def score(self, episode: Episode, timeout_s: float) -> float:
        """Ask once; the time-out counts from now, waiting for a free place included."""
        try:
            async with asyncio.timeout(timeout_s), self._limit:
                return self._reward(await self._post(self._request(episode)))
        except TimeoutError as error:
            raise RewardFailure(Cause.TIMEOUT, "no answer in time") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RewardFailure(Cause.ERROR, str(error)) from error

    def _request(self, episode: Episode) -> dict[str, Any]:
        said = [token for token, made in zip(episode.tokens, episode.made, strict=True) if made]
        return {
            "task": episode.task,
            "text": self._tokenizer.text(episode.tokens),
            "answer": self._tokenizer.text(said),
            "earned": episode.reward,
        }

    async def _post(self, request: dict[str, Any]) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        async with self._session.post(self._task.reward, json=request) as response:
            response.raise_for_status()
            content = await response.content.read(MOST_BYTES)
        return json.loads(content)

    def _reward(self, answer: Any) -> float:
        reward = answer.get("reward") if isinstance(answer, dict) else None
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise ValueError(f"the answer has no finite number `reward`: {str(answer)[:100]}")
        return float(reward)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
