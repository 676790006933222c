"""Characters as tokens."""

import pytest

from rollart.domain.errors import ScenarioError
from rollart.exec.real.tokens import ALPHABET, Characters


def test_the_alphabet_fits_a_vocabulary_of_64():
    assert len(set(ALPHABET)) == len(ALPHABET) == 64


def test_text_comes_back():
    characters = Characters(64)
    ids = characters.observation("S: 0,1\nL", first=True)
    assert characters.text(ids) == "S: 0,1\nL"
    assert characters.text([0, 99, *ids[:1]]) == "?S"
    assert characters.observation("é", first=False) == [characters.token("?")]


def test_a_token_is_one_character():
    characters = Characters(64)
    with pytest.raises(ScenarioError, match="'ab' is no character"):
        characters.token("ab")
    with pytest.raises(ScenarioError, match="vocabulary of 10; the tokenizer `characters` needs 64"):
        Characters(10)
