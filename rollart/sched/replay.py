"""Replay: the events of a run, fed to a fresh controller, give back the commands of that run."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from rollart.domain.commands import Command
from rollart.domain.errors import RunLogError
from rollart.domain.events import Event
from rollart.runlog.header import RunHeader
from rollart.runlog.schema import Record
from rollart.sched.config import ControllerConfig
from rollart.sched.controller import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """How far a replay went, and where it first decided otherwise."""

    events: int
    commands: int
    difference: str | None
    """One line on the first difference; None: there is none."""


def controller_of(header: RunHeader) -> Controller:
    """A fresh controller as the run began with; RunLogError if the header has no usable configuration."""
    try:
        return Controller(msgspec.convert(header.controller, ControllerConfig))
    except msgspec.ValidationError as error:
        raise RunLogError(f"run log: the controller's configuration cannot be read: {error}") from None


def replay(header: RunHeader, records: Iterable[tuple[int, float, Record]]) -> ReplayReport:
    """Feed the events in order and compare command by command; stops at the first difference."""
    controller = controller_of(header)
    expected: list[Command] = []
    events = commands = position = 0
    at = "the start"
    for seq, time_s, record in records:
        if isinstance(record, Event):
            if position < len(expected):
                return _differs(events, commands, f"after {at}: {expected[position]} is missing in the log")
            expected = controller.handle(record, time_s)
            position = 0
            events += 1
            at = f"event {seq} ({type(record).__name__}) at {time_s:.6f} s"
        elif isinstance(record, Command):
            ordered = expected[position] if position < len(expected) else None
            if ordered != record:
                return _differs(events, commands, f"after {at}: the log has {record}, the replay {ordered}")
            position += 1
            commands += 1
    if position < len(expected):
        return _differs(events, commands, f"after {at}: {expected[position]} is missing in the log")
    return ReplayReport(events=events, commands=commands, difference=None)


def _differs(events: int, commands: int, difference: str) -> ReplayReport:
    return ReplayReport(events=events, commands=commands, difference=difference)
