"""LMCache's agent traces: one call of the model a line, with its whole prompt as text.

Lines of a session may be out of order and are sorted by their time stamps. What a prompt shares with the one
before it, in steps of 128 characters, survives; the rest is new. Outputs are not in the next prompt (the log
holds what was sent), so they do not survive. The time between two calls holds the model's and the
environment's and cannot be told apart: there are no step times.
"""

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.tokens import TokenCounter
from rollart.workload.trace import Name, TraceTurn

_BLOCK_CHARACTERS = 128
"""Prompts are compared by hashes of blocks: keeping their texts would take the memory of the whole file."""
_HASH_BYTES = 8


class _Line(msgspec.Struct, frozen=True):
    timestamp: Annotated[int, Meta(ge=0)]
    """Microseconds since 1970; upstream does not say whether of the start or the end of the call."""
    input: str
    output: str
    session_id: Name


class _Call(NamedTuple):
    timestamp_us: int
    blocks: bytes
    """Chained hashes of the prompt's whole blocks."""
    context_tokens: int
    output_tokens: int


class LMCacheReader(FormatReader):
    """Reads the JSONL of lmcache-agent-trace; a session is a trajectory and a group of its own."""

    format: ClassVar[str] = "lmcache"
    about: ClassVar[str] = "LMCache agent trace (timestamp, input, output, session_id a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The four keys of a call."""
        return not sample.is_list and sample.has("timestamp", "input", "output", "session_id")

    def open(self, path: Path) -> RecordReader:
        """Sessions are complete at the end of the file."""
        return _Sessions(f"lmcache-{path.name.partition('.')[0]}", self.job.count)


class _Sessions:
    def __init__(self, task: str, count: TokenCounter) -> None:
        self._task = task
        self._count = count
        self._calls: dict[str, list[_Call]] = {}

    def read(self, record: bytes) -> Iterable[Episode]:
        line = _decode(record)
        call = _Call(line.timestamp, _blocks(line.input), self._count(line.input), self._count(line.output))
        self._calls.setdefault(line.session_id, []).append(call)
        return ()

    def finish(self) -> Iterable[Episode]:
        for session, calls in self._calls.items():
            calls.sort(key=lambda call: call.timestamp_us)
            yield Episode(
                task=self._task,
                group=session,
                identity=session,
                prompt_tokens=max(1, calls[0].context_tokens),
                turns=_turns(calls, self._count),
                tokens="estimated",
            )


_decode = msgspec.json.Decoder(_Line).decode


def _turns(calls: list[_Call], count: TokenCounter) -> tuple[TraceTurn, ...]:
    turns = [TraceTurn(output_tokens=calls[0].output_tokens)]
    for before, call in pairwise(calls):
        if call.blocks.startswith(before.blocks):
            kept = min(before.context_tokens, call.context_tokens)
        else:
            kept = min(count("x" * (_common(before.blocks, call.blocks) * _BLOCK_CHARACTERS)), call.context_tokens)
        turns.append(
            TraceTurn(prompt_tokens=call.context_tokens - kept, kept_tokens=kept, output_tokens=call.output_tokens)
        )
    return tuple(turns)


def _blocks(text: str) -> bytes:
    digest = blake2b(digest_size=_HASH_BYTES)
    found = []
    for start in range(0, len(text) - _BLOCK_CHARACTERS + 1, _BLOCK_CHARACTERS):
        digest.update(text[start : start + _BLOCK_CHARACTERS].encode("utf-8", "surrogatepass"))
        found.append(digest.digest())
    return b"".join(found)


def _common(before: bytes, after: bytes) -> int:
    """Blocks that both begin with."""
    same = 0
    for start in range(0, min(len(before), len(after)), _HASH_BYTES):
        if before[start : start + _HASH_BYTES] != after[start : start + _HASH_BYTES]:
            break
        same += 1
    return same
