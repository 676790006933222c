"""From text to token ids and back: characters for models made on the spot, or a model folder's own tokenizer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rollart.domain.errors import ScenarioError

END = "\x03"
ALPHABET = END + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm+-*/=.,:?()# \n"
"""One token a character; the first ends a text. 64 tokens, for vocabularies that small."""


class Tokenizer(Protocol):
    """What environments and engines ask of a tokenizer."""

    @property
    def end(self) -> int | None:
        """Id of the token that ends an answer."""
        ...

    def observation(self, text: str, *, first: bool) -> list[int]:
        """Ids of what an environment says, ready for the agent's next turn."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """What an agent said."""
        ...

    def token(self, text: str) -> int:
        """Id of the one token that a text is; ScenarioError if it is none."""
        ...


class Characters:
    """Each character of a fixed alphabet is a token."""

    def __init__(self, vocabulary: int) -> None:
        if vocabulary < len(ALPHABET):
            raise ScenarioError(f"model: vocabulary of {vocabulary}; the tokenizer `characters` needs {len(ALPHABET)}")
        self._ids = {character: index for index, character in enumerate(ALPHABET)}

    @property
    def end(self) -> int | None:
        """The first of the alphabet."""
        return 0

    def observation(self, text: str, *, first: bool) -> list[int]:
        """The characters of the text; those outside the alphabet become question marks."""
        del first
        unknown = self._ids["?"]
        return [self._ids.get(character, unknown) for character in text]

    def text(self, ids: Sequence[int]) -> str:
        """The characters; ids beyond the alphabet become question marks."""
        return "".join(ALPHABET[index] if index < len(ALPHABET) else "?" for index in ids if index)

    def token(self, text: str) -> int:
        """Id of a character."""
        if text not in self._ids:
            raise ScenarioError(f"{text!r} is no character of the tokenizer `characters`: {ALPHABET[1:]!r}")
        return self._ids[text]


class FolderTokenizer:
    """The tokenizer of a model folder; with a chat template, observations are a user's messages."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self._chat = bool(self._tokenizer.chat_template)

    @property
    def end(self) -> int | None:
        """The tokenizer's own end of a text."""
        end: int | None = self._tokenizer.eos_token_id
        return end

    def observation(self, text: str, *, first: bool) -> list[int]:
        """The text as a user's message, with the beginning of the agent's answer."""
        if not self._chat:
            return self._encode(text)
        message = {"role": "user", "content": text}
        if first:
            return self._encode(self._render([message]))
        # A template may add text before the first message, so a later one is what it adds to a dialogue.
        marker = "\x01answer\x01"
        before: list[dict[str, str]] = [{"role": "user", "content": "."}, {"role": "assistant", "content": marker}]
        rendered = self._render([*before, message])
        following = rendered[rendered.index(marker) + len(marker) :]
        end = self._tokenizer.eos_token or ""
        return self._encode(following.removeprefix(end))

    def _render(self, messages: list[dict[str, str]]) -> str:
        rendered: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return rendered

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """The text without special tokens."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def token(self, text: str) -> int:
        """Id of the token that is exactly this text."""
        ids = self._encode(text)
        if len(ids) != 1:
            raise ScenarioError(f"{text!r} is {len(ids)} tokens of this model's tokenizer; must be one")
        return ids[0]


def tokenizer_of(kind: str, folder: Path, vocabulary: int) -> Tokenizer:
    """`characters`, or the model folder's own; ScenarioError where that has none."""
    if kind == "characters":
        return Characters(vocabulary)
    try:
        return FolderTokenizer(folder)
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{folder}: no tokenizer: {' '.join(str(error).split())[:120]}") from error
