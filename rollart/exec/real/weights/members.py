"""Who receives a broadcast of weights, and what has become of it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

BROADCAST_LIMIT_S = 600.0
"""Time in which a broadcast must be over: a member that dies leaves the others waiting for ever."""


class Member(NamedTuple):
    """One incarnation of an engine."""

    engine: int
    incarnation: int
    workers: int
    """Processes of vLLM with a part of the weights, one a device."""
    process: Any
    """Its actor."""

    @property
    def identity(self) -> tuple[int, int]:
        """The same for as long as the process lives."""
        return self.engine, self.incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """One that the trainer has outlived."""

    bytes_each: int | None
    """Bytes that every member got; None: it failed, and nobody has the version."""
    probes: list[list[float]]
    """Log-probs of the probe prompts by the trainer's model."""
