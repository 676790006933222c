"""What a modelled worker asks of the time: what it is, and a call when some of it has passed."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """A call that is due later, with what it is about; the hottest object of a simulation."""

    __slots__ = ("function", "payload")

    def __init__(self, function: "Callable[[Call[T]], None]", payload: T) -> None:
        self.function = function
        self.payload = payload


class Clock(Protocol):
    """The time of a run, and calls that happen later; calls due at one time come in the order they were asked for."""

    @property
    def now(self) -> float:
        """Seconds since the start."""

    def after(self, delay_s: float, function: Callable[[Call[Any]], None], payload: Any) -> None:
        """Call `function(call)`, with `call.payload` the payload, after `delay_s` (0 or more) seconds."""
