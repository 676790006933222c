"""A reward function over HTTP: any function service, JSON in, JSON out.

Request: as in `rollart.exec.real.rewards.function`. Answer: {"reward": number}.
"""

import json
import os
from typing import Any

import aiohttp

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.rewards.function import Request, finite
from rollart.exec.real.rewards.scoring import RewardFailure

MOST_BYTES = 1_000_000
"""Of an answer that is read."""


class HttpService:
    """Asks one URL."""

    def __init__(self, task: TaskExecution) -> None:
        """Raises ScenarioError where the secret is not set."""
        self._url = task.reward
        self._session: aiohttp.ClientSession | None = None
        self._headers = {}
        self.billed_s = 0.0
        self.cold_starts = 0
        if task.reward_secret is not None:
            secret = os.environ.get(task.reward_secret)
            if not secret:
                raise ScenarioError(
                    f"tasks.{task.task}.execution.reward_secret: environment variable {task.reward_secret} is not set"
                )
            self._headers = {"Authorization": f"Bearer {secret}"}

    async def start(self) -> None:
        """Nothing is connected before the first request."""

    async def ask(self, request: Request) -> float:
        """Ask once. Raises RewardFailure."""
        try:
            answer = await self._post(request)
            if not isinstance(answer, dict):
                raise ValueError(f"the answer is no mapping: {str(answer)[:100]}")
            return finite(answer.get("reward"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise RewardFailure(Cause.ERROR, str(error)) from error

    async def _post(self, request: Request) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        async with self._session.post(self._url, json=request) as response:
            response.raise_for_status()
            content = await response.content.read(MOST_BYTES)
        return json.loads(content)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
