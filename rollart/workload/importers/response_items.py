"""Items of OpenAI's Responses API, counted as turns of tokens."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from rollart.workload.importers.tokens import TokenCounter
from rollart.workload.trace import TraceTurn

TOKENS_PER_ITEM = 3
"""Role and delimiters that a chat template adds."""


class ItemPart(msgspec.Struct, frozen=True):
    """A part of a message or of a reasoning item; parts without text count as no characters."""

    text: str | None = None


class ResponseItem(msgspec.Struct, frozen=True):
    """A message, a call of a function, its output, or reasoning; further keys are ignored."""

    type: str = "message"
    role: str = ""
    content: str | list[ItemPart] | None = None
    summary: str | list[ItemPart] | None = None
    name: str = ""
    arguments: str | dict[str, Any] | None = None
    output: str | list[Any] | dict[str, Any] | None = None

    @property
    def generated(self) -> bool:
        """Whether the model made it."""
        return self.type in ("reasoning", "function_call", "custom_tool_call") or (
            self.type == "message" and self.role == "assistant"
        )


def item_tokens(item: ResponseItem, count: TokenCounter) -> int:
    """Estimated tokens of one item."""
    arguments = item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments or "")
    output = item.output if isinstance(item.output, str) else json.dumps(item.output or "")
    texts = (_text(item.content), _text(item.summary), item.name)
    extra = (arguments if item.arguments else "") + (output if item.output else "")
    return count("".join(texts) + extra) + TOKENS_PER_ITEM


def items_tokens(items: Sequence[ResponseItem], count: TokenCounter) -> int:
    """Estimated tokens of several items."""
    return sum(item_tokens(item, count) for item in items)


def item_turns(items: Sequence[ResponseItem], count: TokenCounter) -> tuple[TraceTurn, ...]:
    """Turns of a response: consecutive items of the model are one generation, others the observation before the next.

    ValueError if the model made nothing.
    """
    turns: list[TraceTurn] = []
    observed = generated = 0
    speaking = False
    for item in items:
        tokens = item_tokens(item, count)
        if item.generated:
            speaking = True
            generated += tokens
            continue
        if speaking:
            turns.append(TraceTurn(prompt_tokens=observed, output_tokens=generated))
            observed = generated = 0
            speaking = False
        observed += tokens
    if speaking:
        turns.append(TraceTurn(prompt_tokens=observed, output_tokens=generated))
    if not turns:
        raise ValueError(f"output has nothing of the model among {len(items)} items; must have at least one")
    return tuple(turns)


def _text(content: str | list[ItemPart] | None) -> str:
    if isinstance(content, list):
        return "".join(part.text or "" for part in content)
    return content or ""
