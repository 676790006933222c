"""What every driver does with a fact: log it, let the controller decide, log its orders, hand them on.

Facts that follow from one instant are handled first come first served: a command is carried out when the event that
caused it has been handled, and nothing is handled in the middle of another event.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rollart.domain.commands import Command
from rollart.domain.events import Event, TrainingEnded
from rollart.sched.controller import Controller

Table = Mapping[type[Command], Callable[[Any], object]]
"""How a driver carries out each kind of command."""


class Log(Protocol):
    """Where facts and orders are written down, before they are carried out."""

    def event(self, time_s: float, event: Event) -> int:
        """Log an event; its sequence number is the cause of the commands that answer it."""
        ...

    def commands(self, time_s: float, commands: Sequence[Command], cause_seq: int) -> None:
        """Log what the controller ordered when it handled the event `cause_seq`."""
        ...


class Dispatch:
    """The controller of a run between the facts that a driver reports and the orders that it carries out."""

    __slots__ = ("_handle", "_handling", "_inbox", "_log", "_now", "_on_step", "_table", "controller", "events")

    def __init__(
        self,
        controller: Controller,
        log: Log,
        now: Callable[[], float],
        on_step: Callable[[TrainingEnded], None],
    ) -> None:
        self.controller = controller
        self.events = 0
        self._handle = controller.handle
        self._log = log
        self._now = now
        self._on_step = on_step
        self._inbox: deque[Event] = deque()
        self._handling = False
        self._table: Table = {}

    def carry_out_by(self, table: Table) -> None:
        """Say who carries out what; before the first event."""
        self._table = table

    def report(self, event: Event) -> None:
        """A fact has happened: handle it, and what follows from it at this instant."""
        inbox = self._inbox
        inbox.append(event)
        if self._handling:
            return
        self._handling = True
        now = self._now()
        log, handle, table = self._log, self._handle, self._table
        while inbox:
            event = inbox.popleft()
            seq = log.event(now, event)
            commands = handle(event, now)
            if commands:
                log.commands(now, commands, seq)
                for command in commands:
                    table[type(command)](command)
            self.events += 1
            if type(event) is TrainingEnded:
                self._on_step(event)
        self._handling = False
