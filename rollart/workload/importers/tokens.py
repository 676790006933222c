"""Named ways to estimate the tokens of a text where a format has no token counts.

All are estimates: none is the vocabulary of the model that wrote the text. `chars4` and `words` are the usual
rules of thumb for English and byte-pair vocabularies of 100,000 entries; they were not fitted here.
"""

from collections.abc import Callable

from rollart.domain.errors import InputError

TokenCounter = Callable[[str], int]
"""Tokens of a text, 0 for an empty one."""


def chars4(text: str) -> int:
    """One token for every four characters, rounded up."""
    return -(-len(text) // 4)


def words(text: str) -> int:
    """Four tokens for every three words, rounded up."""
    return -(-4 * len(text.split()) // 3)


def utf8_bytes(text: str) -> int:
    """One token for every byte of UTF-8: exact for a model that reads bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def bytes4(text: str) -> int:
    """One token for every four bytes of UTF-8, rounded up: longer than `chars4` for scripts beyond ASCII."""
    return -(-utf8_bytes(text) // 4)


TOKEN_COUNTERS: dict[str, TokenCounter] = {
    "chars4": chars4,
    "words": words,
    "bytes": utf8_bytes,
    "bytes4": bytes4,
}
DEFAULT_TOKENS = "chars4"


def token_counter(name: str) -> TokenCounter:
    """The estimate of that name; InputError for one that is not known."""
    counter = TOKEN_COUNTERS.get(name)
    if counter is None:
        raise InputError(f"--tokens {name!r} is not known; must be one of {', '.join(TOKEN_COUNTERS)}")
    return counter
