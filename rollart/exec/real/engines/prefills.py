"""Turns whose prompt is at a prefill engine, from the driver's side; each goes on to its decode engine.

The controller chose both engines. A turn is open on its decode engine from the start, so that what happens to that
engine decides about the turn; here is only who waits for which prompt.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rollart.exec.real.engines.link import EngineLink
from rollart.exec.real.wire import Message


class _Waiting(NamedTuple):
    prefill: EngineLink
    decode: EngineLink
    turn: Message


class Prefills:
    """Prompts under way, by the command of their turn."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}

    def begin(self, prefill: EngineLink, decode: EngineLink, turn: Message) -> None:
        """Send the prompt of a turn to its prefill engine, which is up."""
        _, command, task, prompt, _ = turn
        self._waiting[command] = _Waiting(prefill, decode, turn)
        prefill.post(("prefill", command, task, prompt))

    def prefilled(self, command: int, handover: Sequence[Any] | None) -> None:
        """The prompt is computed: the turn goes to its decode engine with it, or the KV is given up.

        None: there is nothing to hand over, and the decode engine computes the prompt itself.
        """
        waiting = self._waiting.pop(command, None)
        if waiting is not None and command in waiting.decode.open:
            waiting.decode.post((*waiting.turn, handover))
        elif waiting is not None and handover is not None:
            waiting.decode.post(("release", command, handover))

    def abort(self, command: int) -> bool:
        """Stop a prompt; False where none is under way. One that is ready all the same is given up then."""
        waiting = self._waiting.get(command)
        if waiting is None:
            return False
        # Under the number of the turn: nobody waits for the answer.
        waiting.prefill.post(("abort", command, command))
        return True

    def stopped(self, command: int) -> None:
        """A prompt was stopped before it was ready."""
        self._waiting.pop(command, None)

    def lost(self, link: EngineLink) -> tuple[int, ...]:
        """An engine is gone: the turns that waited for a prompt of it, which are open nowhere now."""
        lost = []
        for command, waiting in list(self._waiting.items()):
            if waiting.prefill is link:
                del self._waiting[command]
                if waiting.decode.open.pop(command, None) is not None:
                    lost.append(command)
        return tuple(lost)
