"""A process that cannot start: one line for the user, and where the rest is told.

vLLM works in processes of its own, whose errors reach only the log that they share with their actor.
"""

import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from rollart.domain.errors import StartError

T = TypeVar("T")

OWN_LOG = Path("/proc/self/fd/2")
"""Where standard error of this process goes: a file of Ray's."""
ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): \S.*$", re.MULTILINE)
"""Last line of a traceback."""
LONGEST = 600


@contextmanager
def telling_why(log: Path = OWN_LOG) -> Iterator[None]:
    """Around what a process does to start: whatever it raises becomes a StartError."""
    try:
        yield
    except Exception as error:
        told = [f"{type(error).__name__}: {error}"]
        with suppress(OSError):
            logged = ERROR.findall(log.read_text(encoding="utf-8", errors="replace"))
            told += [
                f"the last error in its log: {other}" for other in logged[-1:] if in_a_line(other) != in_a_line(told[0])
            ]
            told.append(f"its log is {log.resolve()} on {ray.util.get_node_ip_address()}")
        raise StartError("; ".join(in_a_line(part) for part in told)) from error


async def started(what: str, start: Awaitable[T]) -> T:
    """The answer of a process that starts. Raises StartError where it cannot, or dies over it."""
    try:
        return await start
    except RayTaskError as error:
        raise StartError(f"{what} could not start: {in_a_line(error.cause)}") from error
    except RayError as error:
        raise StartError(f"{what} died while it started: {in_a_line(error)}") from error


def in_a_line(told: object) -> str:
    """What it says, without line breaks, not too long and without a full stop."""
    return " ".join(str(told).split())[:LONGEST].rstrip(".")
