"""Batched messages between the driver's loop and a Ray actor.

A Ray call takes about a millisecond and a turn may be one token, so neither side sends messages one by one: one call
at a time takes all that was posted while the one before it was on its way, and one open call at a time brings back all
that the actor has to say. Messages arrive in the order in which they were posted.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

Message = tuple[Any, ...]


class Outbox:
    """The actor's side: what it has to say until it is asked."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._filled = asyncio.Event()

    def post(self, message: Message) -> None:
        """Say something."""
        self._messages.append(message)
        self._filled.set()

    async def collect(self) -> list[Message]:
        """All that was said, at least one message."""
        await self._filled.wait()
        self._filled.clear()
        messages, self._messages = self._messages, []
        return messages


class Mailbox:
    """The driver's side of one actor, which has the methods `submit(messages)` and `collect()`.

    `received(message)` is called on the driver's loop, in order; `lost(reason)` once, when the actor is gone.
    """

    def __init__(self, actor: Any, received: Callable[[Message], None], lost: Callable[[str], None]) -> None:
        self.actor = actor
        self._received = received
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._posted: list[Message] = []
        self._filled = asyncio.Event()
        self.closed = False
        self._tasks = [self._loop.create_task(self._submit()), self._loop.create_task(self._collect())]

    def post(self, message: Message) -> None:
        """Send a message with the next batch."""
        if self.closed:
            return
        self._posted.append(message)
        self._filled.set()

    async def _submit(self) -> None:
        while not self.closed:
            await self._filled.wait()
            self._filled.clear()
            messages, self._posted = self._posted, []
            try:
                await self.actor.submit.remote(messages)
            except RayError as error:
                self._gone(error)

    async def _collect(self) -> None:
        while not self.closed:
            try:
                messages: Sequence[Message] = await self.actor.collect.remote()
            except RayError as error:
                self._gone(error)
                return
            for message in messages:
                self._hand_on(message)

    def _hand_on(self, message: Message) -> None:
        """To the receiver, unless one before it made it close this box."""
        if not self.closed:
            self._received(message)

    def _gone(self, error: RayError) -> None:
        if not self.closed:
            self.closed = True
            self._lost(" ".join(str(error).split())[:400])

    def kill(self) -> None:
        """End the actor's process; nothing is received any more."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        ray.kill(self.actor)
