"""Messages between a driver and its fake workers: one command or one event each, in MessagePack with its kind."""

from functools import reduce
from operator import or_

import msgspec

from rollart.domain.commands import COMMANDS, Command
from rollart.domain.events import EVENTS, Event

_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(reduce(or_, COMMANDS))
_events: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(reduce(or_, EVENTS))

encode = msgspec.msgpack.Encoder().encode
"""A command or an event as a message."""


def command_of(message: bytes) -> Command:
    """The command in a message; msgspec.DecodeError if there is none."""
    return _commands.decode(message)


def event_of(message: bytes) -> Event:
    """The event in a message; msgspec.DecodeError if there is none."""
    return _events.decode(message)
