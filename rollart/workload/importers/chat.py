"""Chat messages in OpenAI's form, counted as turns of tokens.

Each assistant message is a turn; what stands before the first one is the prompt, what stands between two of
them is the observation. There are no token counts in such messages: they are estimated from their text.
"""

import json
from collections.abc import Sequence

import msgspec

from rollart.workload.importers.tokens import TokenCounter
from rollart.workload.trace import TraceTurn

TOKENS_PER_MESSAGE = 3
"""Role and delimiters that a chat template adds to a message."""
_CALL_FORM = '{"name": "", "arguments": }'
"""What a chat template writes around the name and the arguments of a tool call."""


class ToolFunction(msgspec.Struct, frozen=True):
    """Name and arguments of a called tool; arguments are JSON text, or already parsed."""

    name: str = ""
    arguments: str | dict[str, object] | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call of an assistant message: in OpenAI's form, or in the flat one of verifiers and Inspect."""

    function: ToolFunction | str = ToolFunction()
    name: str = ""
    arguments: str | dict[str, object] | None = None

    @property
    def called(self) -> tuple[str, str]:
        """(name, arguments as text)."""
        function = self.function
        if isinstance(function, str):
            name, arguments = function, self.arguments
        elif function.name or function.arguments:
            name, arguments = function.name, function.arguments
        else:
            name, arguments = self.name, self.arguments
        return name, arguments if isinstance(arguments, str) else json.dumps(arguments or {})


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message; parts without text (images) count as no characters."""

    text: str | None = None
    reasoning: str | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    """One message; further keys are ignored."""

    role: str
    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


def message_tokens(message: ChatMessage, count: TokenCounter) -> int:
    """Estimated tokens of one message: of its text with tool calls, plus 3."""
    return count(message_text(message)) + TOKENS_PER_MESSAGE


def message_text(message: ChatMessage) -> str:
    """All that a template writes of a message, but the delimiters."""
    content = message.content
    parts = [message.reasoning_content or ""]
    if isinstance(content, list):
        parts.extend((part.reasoning or "") + (part.text or "") for part in content)
    else:
        parts.append(content or "")
    for call in message.tool_calls or ():
        name, arguments = call.called
        parts.append(f"{_CALL_FORM}{name}{arguments}")
    return "".join(parts)


def leading_prompt(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages before the first answer."""
    for index, message in enumerate(messages):
        if message.role == "assistant":
            return messages[:index]
    return messages


def chat_turns(
    messages: Sequence[ChatMessage],
    shared_messages: int,
    count: TokenCounter,
    env_s: Sequence[float | None] = (),
) -> tuple[int, tuple[TraceTurn, ...]]:
    """(tokens of the first `shared_messages` messages, turns); ValueError if no assistant ever speaks.

    `env_s`: seconds of the step after each answer, as far as known. Messages behind the last answer reach no
    generation and are not counted.
    """
    shared_tokens = sum(message_tokens(message, count) for message in messages[:shared_messages])
    turns: list[TraceTurn] = []
    new_tokens = 0
    for message in messages[shared_messages:]:
        tokens = message_tokens(message, count)
        if message.role == "assistant":
            step_s = env_s[len(turns)] if len(turns) < len(env_s) else None
            turns.append(TraceTurn(prompt_tokens=new_tokens, output_tokens=tokens, env_s=step_s))
            new_tokens = 0
        else:
            new_tokens += tokens
    if not turns:
        raise ValueError(f"messages has no assistant message among {len(messages)}; must have at least one")
    return shared_tokens, tuple(turns)
