"""What a modelled worker asks of the time: what it is, and a call when some of it has passed."""

from collections.abc import Callable
from typing import Any, Protocol


class Clock(Protocol):
    """The time of a run, and calls that happen later; calls due at one time come in the order they were asked for."""

    @property
    def now(self) -> float:
        """Seconds since the start."""

    def after(self, delay_s: float, function: Callable[[Any], None], payload: Any) -> None:
        """Call `function(payload)` after `delay_s` (0 or more) seconds."""
