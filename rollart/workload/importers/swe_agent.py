"""SWE-agent's `.traj`: one document for each run, of version 0 and 1.

`history` holds the messages as the model saw them, `trajectory` the steps with their `execution_time` (version
1 only). Demonstrations count as prompt. Tokens are estimated from texts and scaled to the sums in
`info.model_stats`, where they are of as many calls as there are turns.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.importers.episode import Episode, Outcome
from rollart.workload.importers.files import bare_name
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.records import Record, document
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.totals import scaled_to
from rollart.workload.trace import Seconds, Tokens, TraceTurn


class _Step(msgspec.Struct, frozen=True):
    execution_time: Seconds | None = None


class _Message(ChatMessage, frozen=True):
    is_demo: bool = False
    agent: str = ""


class _ModelStats(msgspec.Struct, frozen=True):
    tokens_sent: Tokens = 0
    tokens_received: Tokens = 0
    api_calls: Tokens = 0
    """All are 0 or sums over every call, those that were retried too."""


class _Info(msgspec.Struct, frozen=True):
    exit_status: str | None = None
    model_stats: _ModelStats = _ModelStats()


class _Run(msgspec.Struct, frozen=True):
    trajectory: list[_Step]
    history: list[_Message]
    info: _Info = _Info()


class SweAgentReader(FormatReader):
    """Reads `.traj` files; the file's name is the group, so runs of one instance in several folders are members."""

    format: ClassVar[str] = "swe-agent"
    about: ClassVar[str] = "a SWE-agent .traj (JSON with trajectory[], history[], info)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The steps come first, the rest may be far behind."""
        return not sample.is_list and (sample.has("trajectory") and not sample.has("messages"))

    def records(self, path: Path) -> Iterator[Record]:
        """The whole document."""
        return document(path)

    def open(self, path: Path) -> RecordReader:
        """One document, one trajectory."""
        group = bare_name(path)

        def episodes(content: bytes) -> Iterable[Episode]:
            run = _decode(content)
            history = [_as_prompt(message) for message in run.history]
            env_s = [step.execution_time for step in run.trajectory]
            prompt = len(leading_prompt(history))
            prompt_tokens, turns = chat_turns(history, prompt, self.job.count, env_s)
            prompt_tokens, turns = _scaled(run, prompt_tokens, turns)
            yield Episode(
                task="swe-agent",
                group=group,
                prompt_tokens=prompt_tokens,
                turns=turns,
                outcome=_outcome(run.info.exit_status),
                tokens="estimated",
            )

        return EachRecord(episodes)


_decode = msgspec.json.Decoder(_Run).decode


def _scaled(run: _Run, prompt_tokens: int, turns: tuple[TraceTurn, ...]) -> tuple[int, tuple[TraceTurn, ...]]:
    """To the run's own sums, if they are of these turns."""
    stats = run.info.model_stats
    if stats.api_calls != len(turns):
        return prompt_tokens, turns
    received = stats.tokens_received
    if any(message.tool_calls for message in run.history):
        # SWE-agent counts the text of an answer, not its tool calls.
        received = sum(turn.output_tokens for turn in turns)
    return scaled_to(prompt_tokens, turns, stats.tokens_sent, received)


def _as_prompt(message: _Message) -> ChatMessage:
    """A demonstration is not generated, whoever speaks in it."""
    return msgspec.structs.replace(message, role="user") if message.is_demo else message


def _outcome(exit_status: str | None) -> Outcome:
    """Of "submitted", "submitted (exit_cost)", "exit_context", "exit_error", ...; none at all is taken for ok."""
    status = (exit_status or "submitted").lower()
    if status == "submitted":
        return "ok"
    limits = ("cost", "context", "max", "limit", "time", "calls")
    return "truncated" if any(word in status for word in limits) else "failed"
