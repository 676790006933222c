"""One-way lanes for messages, which arrive in the order in which they were sent."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

Receiver = Callable[[bytes], None]


class Lane(Protocol):
    """Carries messages to its receiver."""

    def send(self, message: bytes) -> None:
        """Put a message on its way."""
        ...

    @property
    def empty(self) -> bool:
        """Whether no message is on its way."""
        ...

    def open(self) -> None:
        """Begin to deliver; on a running event loop."""
        ...

    async def close(self) -> None:
        """Deliver nothing more."""
        ...


class DirectLane:
    """Delivers a message where it is sent: under a logical clock nothing is on its way while time jumps."""

    empty = True

    def __init__(self, receive: Receiver) -> None:
        self.send = receive

    def open(self) -> None:
        """Nothing is to be done."""

    async def close(self) -> None:
        """Nothing is to be done."""


class QueueLane:
    """Delivers from an asyncio queue, in a task of its own: sender and receiver run at times of their own."""

    def __init__(self, receive: Receiver, fail: Callable[[BaseException], None]) -> None:
        self._receive = receive
        self._fail = fail
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.drained: Callable[[], None] = lambda: None
        """Called whenever the last message was delivered."""

    @property
    def empty(self) -> bool:
        """Whether no message is on its way."""
        return self._queue.empty()

    def send(self, message: bytes) -> None:
        """Put a message on its way."""
        self._queue.put_nowait(message)

    def open(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.get_running_loop().create_task(self._deliver())

    async def close(self) -> None:
        """Deliver nothing more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _deliver(self) -> None:
        queue, receive = self._queue, self._receive
        try:
            while True:
                receive(await queue.get())
                if queue.empty():
                    self.drained()
        except Exception as error:
            self._fail(error)
