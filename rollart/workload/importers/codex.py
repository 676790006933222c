"""Codex's session files (`rollout-*.jsonl`): a line for each item and event, as `timestamp, type, payload`.

A `token_count` event ends a call of the model and has its counts (`last_token_usage`; cached tokens are part of
the input); one that repeats the totals of the one before is not a call. The step lasts until the last output of
a tool before the next answer. The wait for a human is no step.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.clock import instant, span_s
from rollart.workload.importers.episode import Call, Episode, turns_of_calls
from rollart.workload.importers.files import bare_name
from rollart.workload.importers.format_reader import FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Tokens


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: Tokens = 0
    cached_input_tokens: Tokens | None = None
    output_tokens: Tokens = 0
    """Reasoning is part of it."""


class _Info(msgspec.Struct, frozen=True):
    total_token_usage: _Usage | None = None
    last_token_usage: _Usage | None = None


class _Payload(msgspec.Struct, frozen=True):
    type: str | None = None
    id: str | None = None
    info: _Info | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str
    timestamp: str | None = None
    payload: _Payload = _Payload()


class CodexReader(FormatReader):
    """Reads `~/.codex/sessions/**/rollout-*.jsonl`; a session is a trajectory and a group of its own."""

    format: ClassVar[str] = "codex"
    about: ClassVar[str] = "a Codex session (lines with timestamp, type, payload)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The envelope of every line."""
        return not sample.is_list and sample.has("timestamp", "type", "payload")

    def open(self, path: Path) -> RecordReader:
        """The trajectory is complete at the end of the file."""
        return _Session(bare_name(path))


class _Session:
    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: list[Call] = []
        self._usage: _Usage | None = None
        self._total: _Usage | None = None
        self._ended_s: float | None = None
        self._step_s: float | None = None

    def read(self, record: bytes) -> Iterable[Episode]:
        line = _decode(record)
        payload = line.payload
        at_s = None if line.timestamp is None else instant(line.timestamp)
        if line.type == "session_meta" and payload.id:
            self._name = payload.id
        elif payload.type == "token_count" and payload.info is not None:
            self._counted(payload.info, at_s)
        elif payload.type in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            self._stepped(at_s)
        return ()

    def finish(self) -> Iterable[Episode]:
        self._close()
        prompt_tokens, turns = turns_of_calls(self._calls)
        yield Episode(
            task="codex",
            group=self._name,
            identity=self._name,
            prompt_tokens=prompt_tokens,
            turns=turns,
            tokens="counted",
        )

    def _counted(self, info: _Info, at_s: float | None) -> None:
        repeated = info.total_token_usage is not None and info.total_token_usage == self._total
        if info.last_token_usage is None or repeated:
            return
        self._close()
        self._total = info.total_token_usage
        self._usage = info.last_token_usage
        self._ended_s = at_s

    def _stepped(self, at_s: float | None) -> None:
        if self._usage is None or self._ended_s is None or at_s is None:
            return
        number = len(self._calls)
        self._step_s = max(self._step_s or 0.0, span_s(self._ended_s, at_s, f"the step of turn {number}"))

    def _close(self) -> None:
        if self._usage is None:
            return
        self._calls.append(
            Call(
                context_tokens=self._usage.input_tokens,
                output_tokens=self._usage.output_tokens,
                cached_tokens=self._usage.cached_input_tokens,
                env_s=self._step_s,
            )
        )
        self._usage = self._step_s = None


_decode = msgspec.json.Decoder(_Line).decode
