"""Messages between two processes over a socket of their own: plain data in msgpack, in order.

Ray is for what is rare: it starts processes, watches over them and carries weights. A call of it takes a millisecond
and a half of processor time, and a turn may be one token. What is posted in one go of the event loop is one frame: its
length, then a list of messages. What comes in is decoded as data and never executed.

The driver listens, on the address by which Ray knows its node (the loopback, unless it has joined a cluster), and every
process that it starts calls back. A line is good for one call: whoever comes without the key of an open one is sent
away.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

import msgspec

Message = Sequence[Any]
"""Its kind, then what belongs to it. Tuples and named tuples arrive as lists."""

LENGTH_BYTES = 8
KEY_BYTES = 16
GREETING_S = 30.0
"""Time in which a caller must show its key."""


class Line(NamedTuple):
    """What a process must know to call the driver."""

    host: str
    port: int
    key: bytes


class Wire:
    """One end of a connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        closing: Callable[[], Sequence[Message]] = tuple,
    ) -> None:
        """`closing`: messages that every frame ends with."""
        self._reader = reader
        self._writer = writer
        self._closing = closing
        self._loop = asyncio.get_running_loop()
        self._posted: list[msgspec.Raw] = []
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[list[Any]])

    def post(self, message: Message) -> None:
        """Send a message, with all others of this go of the loop. Raises TypeError where it is not plain data."""
        encoded = msgspec.Raw(self._encoder.encode(message))
        if not self._posted:
            self._loop.call_soon(self._flush)
        self._posted.append(encoded)

    def _flush(self) -> None:
        frame = self._encoder.encode([*self._posted, *self._closing()])
        self._posted.clear()
        self._writer.write(len(frame).to_bytes(LENGTH_BYTES))
        self._writer.write(frame)

    async def receive(self) -> list[list[Any]]:
        """Messages of the next frame. Raises EOFError or OSError where the other end is gone."""
        length = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES))
        return self._decoder.decode(await self._reader.readexactly(length))

    def close(self) -> None:
        """Hang up; what was posted in this go of the loop is not sent any more."""
        self._writer.close()


async def call(line: Line, closing: Callable[[], Sequence[Message]] = tuple) -> Wire:
    """The caller's end of a line. Raises OSError where nobody listens."""
    reader, writer = await asyncio.open_connection(line.host, line.port)
    writer.write(line.key)
    return Wire(reader, writer, closing)


class Exchange:
    """Where the processes of a run call in."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._port = 0
        self._server: asyncio.Server | None = None
        self._expected: dict[bytes, Callable[[Wire], None]] = {}

    @classmethod
    async def opened(cls, host: str) -> Self:
        """One that listens on a port of its own. Raises OSError."""
        exchange = cls(host)
        exchange._server = await asyncio.start_server(exchange._greet, host, 0)
        exchange._port = exchange._server.sockets[0].getsockname()[1]
        return exchange

    def line(self, connected: Callable[[Wire], None]) -> Line:
        """A line for one process; `connected(wire)` when it calls."""
        key = secrets.token_bytes(KEY_BYTES)
        self._expected[key] = connected
        return Line(self._host, self._port, key)

    def forget(self, line: Line) -> None:
        """Nobody will call on this line any more."""
        self._expected.pop(line.key, None)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected = None
        with suppress(EOFError, OSError, TimeoutError):
            key = await asyncio.wait_for(reader.readexactly(KEY_BYTES), GREETING_S)
            connected = self._expected.pop(key, None)
        if connected is None:
            writer.close()
        else:
            connected(Wire(reader, writer))

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
