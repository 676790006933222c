"""The controller's timers on a clock."""

from collections.abc import Callable

from rollart.domain.commands import CancelTimer, SetTimer
from rollart.domain.events import Event, TimerFired
from rollart.modelled.clock import Clock


class Timers:
    """Carries out SetTimer and CancelTimer."""

    def __init__(self, clock: Clock, report: Callable[[Event], None]) -> None:
        self._clock = clock
        self._report = report
        self._open: set[int] = set()

    def set(self, command: SetTimer) -> None:
        """Report once the delay is over, unless it is cancelled before."""
        self._open.add(command.id)
        self._clock.after(command.delay_s, self._fired, command.id)

    def cancel(self, command: CancelTimer) -> None:
        """Forget a timer."""
        self._open.discard(command.target)

    def _fired(self, command_id: int) -> None:
        if command_id in self._open:
            self._open.remove(command_id)
            self._report(TimerFired(command_id=command_id))
