"""A process of Ray Serve that computes rewards by a function of the user's.

The function takes one mapping (see `rollart.exec.real.rewards.function`) and returns a number; it may be a coroutine
function, or a class, of which each process makes one without arguments.
"""

import asyncio
import importlib
import inspect
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rollart.domain.errors import ScenarioError

THREADS = 64
"""Calls of a process that may hang before it takes no more; Serve has replaced it long before."""


def imported(path: str) -> Callable[[Any], Any]:
    """The function at `package.module:name`, or an instance of the class there. Raises ScenarioError."""
    module_name, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ScenarioError(f"reward {path!r} cannot be imported: {' '.join(str(error).split())[:200]}") from error
    if inspect.isclass(found):
        try:
            found = found()
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            raise ScenarioError(f"reward {path!r} does not start: {text}") from error
    if not callable(found):
        raise ScenarioError(f"reward {path!r} is no function, and no class whose instances can be called")
    function: Callable[[Any], Any] = found
    return function


class RewardReplica:
    """One process; it works on one request at a time."""

    def __init__(self, path: str) -> None:
        self._function = imported(path)
        call = self._function if inspect.isroutine(self._function) else type(self._function).__call__
        self._is_coroutine = inspect.iscoroutinefunction(call)
        self._threads = ThreadPoolExecutor(THREADS)
        self._left: list[Future[Any]] = []
        """Calls that nobody waits for any more."""
        self._asked = 0

    async def __call__(self, request: Any) -> tuple[Any, float, bool]:
        """What the function returns, the seconds it took, and whether this was the first request here."""
        self._asked += 1
        first, began_s = self._asked == 1, time.perf_counter()
        answer = await (self._function(request) if self._is_coroutine else self._in_thread(request))
        return answer, time.perf_counter() - began_s, first

    async def _in_thread(self, request: Any) -> Any:
        call = self._threads.submit(self._function, request)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            self._left.append(call)
            raise

    async def check_health(self) -> None:
        """A call that was given up and still runs makes the process unhealthy: Serve starts another in its place."""
        self._left = [call for call in self._left if not call.done()]
        if self._left:
            raise RuntimeError(f"{len(self._left)} calls hang")
