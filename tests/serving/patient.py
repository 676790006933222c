"""A driver that waits for completions alone, in front of an engine."""

from collections.abc import Callable
from math import inf, nextafter

from rollart.serving import Completion, Engine


class Patient:
    """Passes on what is told, with the engine brought up to it; `next_wake` is when a completion may be due."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def next_wake(self) -> float:
        return max(self.engine.next_wake, self.engine.quiet_until)

    def advance(self, now: float) -> list[Completion]:
        return self.engine.advance(now)

    def __getattr__(self, name: str) -> Callable[..., object]:
        def told(*arguments: object) -> object:
            assert self.engine.advance(nextafter(arguments[-1], -inf)) == []
            return getattr(self.engine, name)(*arguments)

        return told
