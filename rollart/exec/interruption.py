"""Ctrl-C while a run is under way."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """While the block runs, the first Ctrl-C calls `interrupt` on the event loop; a second one does what it does.

    Signals can be handled in the main thread only; elsewhere nothing changes.
    """
    loop = asyncio.get_running_loop()

    def once() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        interrupt()

    with suppress(NotImplementedError, ValueError, RuntimeError):
        loop.add_signal_handler(signal.SIGINT, once)
    try:
        yield
    finally:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)
