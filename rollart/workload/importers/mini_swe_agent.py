"""mini-swe-agent's `.traj.json`: one document for each run.

Version 1 is a bare list of messages, or an object with `info` and `messages`; version 2 adds `extra` to the
messages, with time stamps and, in `response`, the provider's token counts. Where every answer has counts they
are used, else all tokens are estimated from texts.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.importers.clock import instant, span_s
from rollart.workload.importers.episode import Episode, Outcome, turns_of_calls
from rollart.workload.importers.files import bare_name
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.records import Record, document
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.usage import ProviderUsage


class _Response(msgspec.Struct, frozen=True):
    usage: ProviderUsage | None = None


class _Extra(msgspec.Struct, frozen=True):
    timestamp: float | str | None = None
    response: _Response | None = None


class _Message(ChatMessage, frozen=True):
    extra: _Extra = _Extra()


class _Info(msgspec.Struct, frozen=True):
    exit_status: str | None = None


class _Run(msgspec.Struct, frozen=True):
    messages: list[_Message]
    info: _Info = _Info()
    instance_id: str | None = None


class MiniSweAgentReader(FormatReader):
    """Reads `.traj.json` files; `instance_id`, or the file's name, is the group."""

    format: ClassVar[str] = "mini-swe-agent"
    about: ClassVar[str] = "a mini-swe-agent .traj.json (messages[], alone or with info)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """A list of messages, or messages with a run's info."""
        if sample.is_list:
            return sample.has("role", "content")
        return sample.has("messages", "info") or sample.has("info", "trajectory_format")

    def records(self, path: Path) -> Iterator[Record]:
        """The whole document."""
        return document(path)

    def open(self, path: Path) -> RecordReader:
        """One document, one trajectory."""

        def episodes(content: bytes) -> Iterable[Episode]:
            run = _decode(content)
            if isinstance(run, list):
                run = _Run(messages=run)
            yield self._episode(run, run.instance_id or bare_name(path))

        return EachRecord(episodes)

    def _episode(self, run: _Run, group: str) -> Episode:
        messages = run.messages
        env_s = _env_times(messages)
        answers = [message for message in messages if message.role == "assistant"]
        usages = [answer.extra.response.usage for answer in answers if answer.extra.response]
        known = [usage for usage in usages if usage is not None and usage.prompt_tokens]
        if answers and len(known) == len(answers):
            calls = [usage.call(step_s) for usage, step_s in zip(known, env_s, strict=True)]
            prompt_tokens, turns = turns_of_calls(calls)
        else:
            prompt_tokens, turns = chat_turns(messages, len(leading_prompt(messages)), self.job.count, env_s)
        return Episode(
            task="mini-swe-agent",
            group=group,
            prompt_tokens=prompt_tokens,
            turns=turns,
            outcome=_outcome(run.info.exit_status),
            tokens="counted" if known and len(known) == len(answers) else "estimated",
        )


_decode = msgspec.json.Decoder(_Run | list[_Message]).decode


def _env_times(messages: list[_Message]) -> list[float | None]:
    """For each answer, seconds from its time stamp to that of the last message before the next answer."""
    found: list[float | None] = []
    answered_s: float | None = None
    for message in messages:
        stamp = message.extra.timestamp
        at_s = None if stamp is None else instant(stamp)
        if message.role == "assistant":
            found.append(None)
            answered_s = at_s
        elif message.role != "exit" and found and answered_s is not None and at_s is not None:
            found[-1] = span_s(answered_s, at_s, f"the step of turn {len(found) - 1}")
    return found


def _outcome(exit_status: str | None) -> Outcome:
    if exit_status in (None, "", "Submitted"):
        return "ok"
    return "truncated" if "Limit" in exit_status or "Context" in exit_status else "failed"
