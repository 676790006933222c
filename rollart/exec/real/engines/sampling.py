"""Sampling in the texts of a scenario, turned into token ids."""

from collections.abc import Iterable

from rollart.exec.real.engines.spec import Sampling
from rollart.exec.real.tokens import Tokenizer


def sampling_of(tokenizer: Tokenizer, temperature: float, allowed: Iterable[str], stop: Iterable[str]) -> Sampling:
    """The tokenizer's own end ends a text too, where it may be generated. ScenarioError for a text that is no token."""
    ids = tuple(tokenizer.token(text) for text in allowed)
    ends = [tokenizer.token(text) for text in stop]
    if tokenizer.end is not None and (not ids or tokenizer.end in ids):
        ends.append(tokenizer.end)
    return Sampling(temperature=temperature, allowed=ids, stop=tuple(ends))
