"""Claude Code's session files: a line for each message, event or part of an answer.

Lines with one `message.id` are one call of the model, whose usage they repeat; its prompt is what was new, what
was written to the cache and what was read from it. The step lasts from the answer's last line to the last result
of a tool before the next answer, so parallel tools count once, and one that ran while the model still spoke not
at all. The wait for a human is no step. Lines of a sub-agent (`isSidechain`) are a trajectory of their own, by
the message at their root; in their parent they are part of the tool's step.
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
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens = 0


class _Part(msgspec.Struct, frozen=True):
    type: str = ""


class _Message(msgspec.Struct, frozen=True):
    role: str = ""
    id: str | None = None
    model: str | None = None
    content: str | list[_Part] | None = None
    usage: _Usage | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    session: str | None = msgspec.field(name="sessionId", default=None)
    uuid: str | None = None
    parent: str | None = msgspec.field(name="parentUuid", default=None)
    sidechain: bool = msgspec.field(name="isSidechain", default=False)
    api_error: bool = msgspec.field(name="isApiErrorMessage", default=False)
    timestamp: str | None = None
    message: _Message | None = None


class ClaudeCodeReader(FormatReader):
    """Reads `~/.claude/projects/*/*.jsonl`; a session is a trajectory and a group of its own."""

    format: ClassVar[str] = "claude-code"
    about: ClassVar[str] = "a Claude Code session (lines with type, sessionId, message)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The session's id on typed lines."""
        return not sample.is_list and sample.has("type", "sessionId")

    def open(self, path: Path) -> RecordReader:
        """Trajectories are complete at the end of the file."""
        return _Session(bare_name(path))


class _Thread:
    """Calls of the main agent or of one sub-agent."""

    __slots__ = ("_answer", "_calls", "_ended_s", "_finished", "_step_s")

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._finished: set[str] = set()
        self._answer: tuple[str, _Usage] | None = None
        self._ended_s: float | None = None
        self._step_s: float | None = None

    def answered(self, answer: str, usage: _Usage, at_s: float | None) -> None:
        """A line of an answer; lines of earlier answers may come late and are not counted again."""
        if answer in self._finished:
            return
        if self._answer is None or self._answer[0] != answer:
            self._close()
        self._answer = (answer, usage)
        self._ended_s = at_s

    def result(self, at_s: float | None) -> None:
        """A tool's result."""
        if self._answer is None or self._ended_s is None or at_s is None:
            return
        number = len(self._calls)
        self._step_s = max(self._step_s or 0.0, span_s(self._ended_s, at_s, f"the step of turn {number}"))

    def calls(self) -> list[Call]:
        """All calls so far."""
        self._close()
        return self._calls

    def _close(self) -> None:
        if self._answer is None:
            return
        answer, usage = self._answer
        cached = usage.cache_read_input_tokens or 0
        context = usage.input_tokens + (usage.cache_creation_input_tokens or 0) + cached
        self._calls.append(
            Call(
                context_tokens=context,
                output_tokens=usage.output_tokens,
                cached_tokens=cached,
                env_s=self._step_s,
            )
        )
        self._finished.add(answer)
        self._answer = self._step_s = None


class _Session:
    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: dict[str, _Thread] = {}
        self._roots: dict[str, str] = {}
        """Of the messages of sub-agents: the root of their thread."""

    def read(self, record: bytes) -> Iterable[Episode]:
        line = _decode(record)
        message = line.message
        root = self._root(line)
        if message is None or line.api_error or message.model == "<synthetic>":
            return ()
        thread = self._threads.setdefault(root, _Thread())
        at_s = None if line.timestamp is None else instant(line.timestamp)
        if line.type == "assistant" and message.usage is not None:
            thread.answered(message.id or line.uuid or "", message.usage, at_s)
        elif line.type == "user" and _has_result(message):
            thread.result(at_s)
        if line.session and not line.sidechain:
            self._name = line.session
        return ()

    def finish(self) -> Iterable[Episode]:
        for root, thread in self._threads.items():
            calls = thread.calls()
            if not calls:
                continue
            prompt_tokens, turns = turns_of_calls(calls)
            yield Episode(
                task="claude-code/sub-agent" if root else "claude-code",
                group=f"{self._name}/{root}" if root else self._name,
                identity=f"{self._name}/{root}",
                prompt_tokens=prompt_tokens,
                turns=turns,
                tokens="counted",
            )

    def _root(self, line: _Line) -> str:
        if not line.sidechain:
            return ""
        root = self._roots.get(line.parent or "") or line.uuid or "sub-agent"
        if line.uuid:
            self._roots[line.uuid] = root
        return root


_decode = msgspec.json.Decoder(_Line).decode


def _has_result(message: _Message) -> bool:
    return isinstance(message.content, list) and any(part.type == "tool_result" for part in message.content)
