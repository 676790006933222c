"""Mooncake's traces: a request a line, with the ids of the 512-token blocks of its prompt.

An id stands for a block and all before it. A request whose prompt begins with all whole blocks of an earlier
one, and goes on, is the next turn of that conversation; what else it holds is new. Times of arrival have no
place in a trace, and the time between two requests holds the model's and a human's: there are no step times.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import FormatReader, ImportJob, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Tokens, TraceTurn

BLOCK_TOKENS = 512
OPEN_CONVERSATIONS = 100_000
"""A conversation is over when as many others were continued or begun since; bounds memory."""


class _Request(msgspec.Struct, frozen=True):
    timestamp: Annotated[float, Meta(ge=0)]
    """Milliseconds."""
    input_length: Annotated[int, Meta(ge=1, le=10**9)]
    output_length: Tokens
    hash_ids: list[int] = []


class MooncakeReader(FormatReader):
    """Reads the JSONL of the FAST'25 release and of later tools in its form; a conversation is a trajectory."""

    format: ClassVar[str] = "mooncake"
    about: ClassVar[str] = "a Mooncake trace (timestamp, input_length, output_length, hash_ids a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The lengths of a request."""
        return not sample.is_list and sample.has("input_length", "output_length")

    def __init__(self, job: ImportJob) -> None:
        super().__init__(job)
        self._numbers = count()

    def open(self, path: Path) -> RecordReader:
        """Conversations are found as the file is read."""
        return _Conversations(f"mooncake-{path.name.partition('.')[0]}"[:1000], self._numbers)


class _Conversation:
    """Turns so far, and the whole blocks of the last prompt."""

    __slots__ = ("blocks", "context_tokens", "number", "prompt_tokens", "turns")

    def __init__(self, number: int, request: _Request) -> None:
        self.number = number
        self.prompt_tokens = request.input_length
        self.turns = [TraceTurn(output_tokens=request.output_length)]
        self._see(request)

    def continued(self, request: _Request) -> None:
        held_tokens = self.context_tokens + self.turns[-1].output_tokens
        kept = None if request.input_length >= held_tokens else self.blocks * BLOCK_TOKENS
        new = request.input_length - (held_tokens if kept is None else kept)
        self.turns.append(TraceTurn(prompt_tokens=new, kept_tokens=kept, output_tokens=request.output_length))
        self._see(request)

    def _see(self, request: _Request) -> None:
        self.context_tokens = request.input_length
        self.blocks = min(request.input_length // BLOCK_TOKENS, len(request.hash_ids))


class _Conversations:
    def __init__(self, task: str, numbers: Iterator[int]) -> None:
        self._task = task
        self._numbers = numbers
        self._open: dict[int, _Conversation] = {}
        """By the id of the last whole block, least recently used first."""

    def read(self, record: bytes) -> Iterable[Episode]:
        request = _decode(record)
        conversation = self._continued(request)
        if conversation is None:
            conversation = _Conversation(next(self._numbers), request)
        if not conversation.blocks:
            yield self._episode(conversation)
            return
        last = request.hash_ids[conversation.blocks - 1]
        other = self._open.pop(last, None)
        if other is not None:
            yield self._episode(other)
        self._open[last] = conversation
        if len(self._open) > OPEN_CONVERSATIONS:
            yield self._episode(self._open.pop(next(iter(self._open))))

    def finish(self) -> Iterator[Episode]:
        for conversation in self._open.values():
            yield self._episode(conversation)

    def _continued(self, request: _Request) -> _Conversation | None:
        for position in range(len(request.hash_ids) - 1, -1, -1):
            found = self._open.get(request.hash_ids[position])
            if found is None or found.blocks != position + 1:
                continue
            if request.input_length <= found.context_tokens:
                return None
            del self._open[request.hash_ids[position]]
            found.continued(request)
            return found
        return None

    def _episode(self, conversation: _Conversation) -> Episode:
        return Episode(
            task=self._task,
            group=f"conversation-{conversation.number}",
            alone=True,
            prompt_tokens=conversation.prompt_tokens,
            turns=tuple(conversation.turns),
            tokens="counted",
            turns_known="estimated",
        )


_decode = msgspec.json.Decoder(_Request).decode
