"""Chats in OpenAI's JSONL form: one object with `messages` a line.

Chats with the same messages (and tools) before the first answer are one group. There are no times, and no
rewards unless a line has a number under `reward`.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample


class _Chat(msgspec.Struct, frozen=True):
    messages: list[ChatMessage]
    tools: msgspec.Raw = msgspec.Raw()
    reward: float | None = None


class OpenAIChatReader(FormatReader):
    """Reads chat JSONL, plain or gzip, as one task named "chat"."""

    format: ClassVar[str] = "openai-chat"
    about: ClassVar[str] = "OpenAI chat JSONL (one object with messages[] a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """`messages` in objects, a line each."""
        return not sample.is_list and sample.has("messages")

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is a trajectory."""
        return EachRecord(self._episodes)

    def _episodes(self, line: bytes) -> Iterable[Episode]:
        chat = _decode(line)
        prompt = leading_prompt(chat.messages)
        key = msgspec.json.encode(list(prompt)) + bytes(chat.tools)
        prompt_tokens, turns = chat_turns(chat.messages, len(prompt), self.job.count)
        if bytes(chat.tools) not in (b"", b"null"):
            prompt_tokens += self.job.count(bytes(chat.tools).decode())
        yield Episode(
            task="chat",
            group=blake2b(key, digest_size=8).hexdigest(),
            prompt_tokens=prompt_tokens,
            turns=turns,
            reward=chat.reward,
            tokens="estimated",
        )


_decode = msgspec.json.Decoder(_Chat).decode
