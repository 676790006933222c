"""A process that holds environments of one task: a Ray actor with a thread for each that is at work.

Messages in: ("reset", command, trajectory, seed, member), ("step", command, trajectory, token ids),
("close", command, trajectory). Messages out: ("ready", command, token ids, seconds),
("stepped", command, token ids, reward, done, seconds), ("failed", command, reason), ("closed", command).
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rollart.domain.execution import TaskExecution
from rollart.exec.real.environments.protocol import Action, Environment, Observation
from rollart.exec.real.environments.shipped import make_environment
from rollart.exec.real.mailbox import Outbox
from rollart.exec.real.tokens import tokenizer_of
from rollart.exec.real.wire import Line, Message

T = TypeVar("T")


class EnvironmentHost:
    """Keeps environments that are closed for the next trajectory."""

    def __init__(self, task: TaskExecution, tokenizer: str, folder: str, vocabulary: int) -> None:
        self._task = task
        self._tokenizer = tokenizer_of(tokenizer, Path(folder), vocabulary)
        self._outbox = Outbox()
        self._threads = ThreadPoolExecutor(task.environments_per_process)
        self._idle: list[Environment] = []
        self._held: dict[int, Environment] = {}
        self._work: dict[int, asyncio.Task[None]] = {}

    async def serve(self, line: Line) -> None:
        """Do what the driver says, until it hangs up."""
        await self._outbox.serve(line, self.take)

    def take(self, message: Message) -> None:
        """Begin with what is asked; environments work beside each other, the orders to one follow each other."""
        trajectory = message[2]
        before = self._work.get(trajectory)
        self._work[trajectory] = asyncio.create_task(self._carry_out(message, before))

    async def _carry_out(self, message: Message, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        kind, command, trajectory = message[:3]
        if kind == "close":
            self._close(trajectory)
            self._outbox.post(("closed", command))
            return
        began_s = time.perf_counter()
        try:
            if kind == "reset":
                answer = await self._reset(command, trajectory, *message[3:])
            else:
                answer = await self._step(command, trajectory, *message[3:])
        except Exception as error:
            # Whatever an environment raises is its failure, and the controller's to act on.
            self._outbox.post(("failed", command, f"{type(error).__name__}: {error}"[:400]))
            self._discard(trajectory)
            return
        self._outbox.post((*answer, time.perf_counter() - began_s))

    async def _reset(self, command: int, trajectory: int, seed: int, member: int) -> Message:
        environment = self._idle.pop() if self._idle else await self._run(self._make)
        self._held[trajectory] = environment
        observation = await self._run(lambda: environment.reset(seed, member))
        return "ready", command, self._ids(observation, first=True)

    async def _step(self, command: int, trajectory: int, ids: list[int]) -> Message:
        environment = self._held[trajectory]
        action = Action(text=self._tokenizer.text(ids), tokens=ids)
        observation = await self._run(lambda: environment.step(action))
        done = bool(observation.done)
        following = [] if done else self._ids(observation, first=False)
        return "stepped", command, following, float(observation.reward), done

    def _make(self) -> Environment:
        return make_environment(self._task.environment, self._task.arguments)

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def _ids(self, observation: Observation, *, first: bool) -> list[int]:
        text = observation.text
        if isinstance(text, str):
            return self._tokenizer.observation(text, first=first)
        return [int(token) for token in text]

    def _discard(self, trajectory: int) -> None:
        """Give up an environment that failed; what it raises on its way out is of no interest any more."""
        environment = self._held.pop(trajectory, None)
        if environment is not None:
            with suppress(Exception):
                environment.close()

    def _close(self, trajectory: int) -> None:
        """Keep a healthy environment for the next episode."""
        self._work.pop(trajectory, None)
        environment = self._held.pop(trajectory, None)
        if environment is not None:
            self._idle.append(environment)
