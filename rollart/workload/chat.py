"""Chat messages in OpenAI's form, counted as turns of tokens.

Each assistant message is a turn; what stands before the first one is the prompt, what stands between two of
them is the observation. There are no token counts in such files: they are estimated from characters.
"""

import json
import math
from collections.abc import Sequence

import msgspec

from rollart.workload.trace import TraceTurn

CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for English with BPE vocabularies of 100,000 and more; not measured here."""
TOKENS_PER_MESSAGE = 3
"""Role and delimiters that a chat template adds to a message."""
_CALL_FORM = '{"name": "", "arguments": }'
"""What a chat template writes around the name and the arguments of a tool call."""


class ToolFunction(msgspec.Struct, frozen=True):
    """Name and arguments of a called tool; arguments are JSON text, or already parsed."""

    name: str = ""
    arguments: str | dict[str, object] | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call of an assistant message."""

    function: ToolFunction = ToolFunction()


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message; parts without text (images) count as no characters."""

    text: str | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    """One message; further keys are ignored."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCall] | None = None


def message_tokens(message: ChatMessage) -> int:
    """Estimated tokens of one message: ceil(characters / 4) + 3, tool calls included."""
    return math.ceil(_characters(message) / CHARACTERS_PER_TOKEN) + TOKENS_PER_MESSAGE


def leading_prompt(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages before the first answer."""
    for index, message in enumerate(messages):
        if message.role == "assistant":
            return messages[:index]
    return messages


def chat_turns(messages: Sequence[ChatMessage], shared_messages: int) -> tuple[int, tuple[TraceTurn, ...]]:
    """(tokens of the first `shared_messages` messages, turns); ValueError if no assistant ever speaks.

    Messages behind the last answer reach no generation and are not counted.
    """
    shared_tokens = sum(message_tokens(message) for message in messages[:shared_messages])
    turns = []
    new_tokens = 0
    for message in messages[shared_messages:]:
        if message.role == "assistant":
            turns.append(TraceTurn(prompt_tokens=new_tokens, output_tokens=message_tokens(message)))
            new_tokens = 0
        else:
            new_tokens += message_tokens(message)
    if not turns:
        raise ValueError(f"messages has no assistant message among {len(messages)}; must have at least one")
    return shared_tokens, tuple(turns)


def _characters(message: ChatMessage) -> int:
    content = message.content
    if isinstance(content, list):
        characters = sum(len(part.text or "") for part in content)
    else:
        characters = len(content or "")
    for call in message.tool_calls or ():
        arguments = call.function.arguments
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        characters += len(_CALL_FORM) + len(call.function.name) + len(text)
    return characters
