"""Named ways to estimate the tokens of a text where a format has no token counts.

`chars4` and `words` are the usual rules of thumb for English and byte-pair vocabularies of 100,000 entries; they were
not fitted here. A tokenizer of the model counts its texts; what the template puts around them stays an estimate.
"""

from collections.abc import Callable
from pathlib import Path

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
    """The estimate of that name, or by the `tokenizer.json` at that path; InputError where it is neither."""
    counter = TOKEN_COUNTERS.get(name)
    if counter is not None:
        return counter
    path = Path(name)
    if path.is_dir():
        path /= "tokenizer.json"
    if not path.is_file():
        known = ", ".join(TOKEN_COUNTERS)
        raise InputError(f"--tokens {name!r} is not known; must be one of {known}, or a tokenizer.json")
    return _tokenizer(path)


def _tokenizer(path: Path) -> TokenCounter:
    # A package of its own, which comes with transformers.
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError(
            "--tokens with a tokenizer.json needs the package tokenizers; pip install tokenizers"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing more precise
        reason = str(error).splitlines()[0]
        raise InputError(f"--tokens {path}: is no tokenizer ({reason}); must be a tokenizer.json") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
