"""Chats in OpenAI's JSONL form: one object with `messages` a line.

Chats with the same messages before the first answer are one group. There are no times, and no rewards unless
a line has a number under `reward`.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_reader import read_lines


class _Chat(msgspec.Struct, frozen=True):
    messages: list[ChatMessage]
    reward: float | None = None


class OpenAIChatImporter:
    """Reads chat JSONL, plain or gzip, as one task named "chat"."""

    format = "openai-chat"
    about = "OpenAI chat JSONL (one object with messages[] a line)"

    def read(self, path: Path) -> Iterator[TraceTrajectory]:
        """One trajectory per line; members are counted in the order of the file."""
        decode = msgspec.json.Decoder(_Chat).decode
        members: Counter[str] = Counter()
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            try:
                chat = decode(line)
                trajectory = _trajectory(chat, members)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise TraceError(f"{path}:{number}: is not a chat: {error}") from error
            yield trajectory
        if not members:
            raise TraceError(f"{path}: is empty; must have one chat a line")


def _trajectory(chat: _Chat, members: Counter[str]) -> TraceTrajectory:
    prompt = leading_prompt(chat.messages)
    group = blake2b(msgspec.json.encode(list(prompt)), digest_size=8).hexdigest()
    prompt_tokens, turns = chat_turns(chat.messages, len(prompt))
    member = members[group]
    members[group] += 1
    return TraceTrajectory(
        task="chat",
        group=group,
        member=member,
        prompt_tokens=prompt_tokens,
        turns=turns,
        reward=chat.reward,
        provenance={"turns": "counted", "prompt_tokens": "estimated", "output_tokens": "estimated"},
    )
