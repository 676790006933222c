"""The driver and a Ray actor: Ray starts the actor and tells of its end, messages go over a wire.

The actor has a method `serve(line)`, which calls back, carries out what comes and returns when the wire breaks. The
driver keeps that one call of Ray open: whichever ends first, the call or the wire, the actor is gone.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from rollart.domain.errors import StartError
from rollart.exec.real.wire import Exchange, Line, Message, Wire, call


class Outbox:
    """What one side has to say, from before it is connected on."""

    def __init__(self, closing: Callable[[], Sequence[Message]] = tuple) -> None:
        """`closing`: messages that every batch ends with."""
        self._closing = closing
        self._early: list[Message] = []
        self._post: Callable[[Message], None] = self._early.append

    def post(self, message: Message) -> None:
        """Say something."""
        self._post(message)

    def connect(self, wire: Wire) -> None:
        """Say it over a wire, what was said before first."""
        self._post = wire.post
        for message in self._early:
            wire.post(message)

    async def serve(self, line: Line, take: Callable[[Message], None]) -> None:
        """As the actor: call the driver and give `take` every message of it, until it hangs up. Raises StartError."""
        try:
            wire = await call(line, self._closing)
        except OSError as error:
            raise StartError(
                f"the driver cannot be reached at {line.host}:{line.port} ({error}); "
                "nodes must be able to reach each other at any port"
            ) from error
        self.connect(wire)
        try:
            while True:
                for message in await wire.receive():
                    take(message)
        except (EOFError, OSError):
            return
        finally:
            wire.close()


class Mailbox:
    """The driver's side of one actor.

    `received(message)` is called on the driver's loop, in order; `lost(reason)` once, when the actor is gone;
    `failed(error)` where one of the two raises, which nobody else would see.
    """

    def __init__(
        self,
        actor: Any,
        exchange: Exchange,
        received: Callable[[Message], None],
        lost: Callable[[str], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.actor = actor
        self._exchange = exchange
        self._received = received
        self._lost = lost
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox()
        self._wire: Wire | None = None
        self._line = exchange.line(self._connected)
        self.closed = False
        self.connected: asyncio.Future[None] = self._loop.create_future()
        """Done when the actor has called; fails with what Ray says where it never will."""
        self._tasks = [self._loop.create_task(self._watch())]

    def post(self, message: Message) -> None:
        """Send a message."""
        if not self.closed:
            self._outbox.post(message)

    def _connected(self, wire: Wire) -> None:
        if self.closed:
            wire.close()
            return
        self._wire = wire
        self.connected.set_result(None)
        self._outbox.connect(wire)
        self._tasks.append(self._loop.create_task(self._receive(wire)))

    async def _receive(self, wire: Wire) -> None:
        while True:
            try:
                messages = await wire.receive()
            except (EOFError, OSError) as error:
                self._gone(f"its connection broke: {error}")
                return
            self._hand_on(messages)

    def _hand_on(self, messages: Sequence[Message]) -> None:
        """To the receiver, unless one before them made it close this box."""
        try:
            for message in messages:
                if not self.closed:
                    self._received(message)
        except Exception as error:
            self._failed(error)

    async def _watch(self) -> None:
        """Ray's word on the actor: the call ends with the process, or with the connection."""
        try:
            await self.actor.serve.remote(self._line)
        except RayError as error:
            if not self.connected.done():
                self.connected.set_exception(error)
                # Not everybody waits for it.
                self.connected.exception()
            self._gone(str(error))
        else:
            self._gone("it hung up")

    def _gone(self, reason: str) -> None:
        if self.closed:
            return
        self.kill()
        try:
            self._lost(" ".join(reason.split())[:400])
        except Exception as error:
            self._failed(error)

    def kill(self) -> None:
        """End the actor's process; nothing is received any more."""
        self.hang_up()
        ray.kill(self.actor)

    def hang_up(self) -> None:
        """Receive nothing any more."""
        self.closed = True
        self._exchange.forget(self._line)
        if self._wire is not None:
            self._wire.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
