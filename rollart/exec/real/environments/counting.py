"""Counting upwards: one long answer, graded digit by digit."""

from rollart.exec.real.environments.protocol import Action, Observation


class Counting:
    """Go on counting modulo `modulus` for `length` digits from the digit that is shown.

    The reward is the share of digits that follow the one before them.
    """

    def __init__(self, *, length: int = 32, modulus: int = 10) -> None:
        if not 2 <= modulus <= 10:
            raise ValueError(f"modulus is {modulus}; must be from 2 to 10")
        self._length = length
        self._modulus = modulus
        self._first = 0

    def reset(self, seed: int, member: int) -> Observation:
        """The digit to start from."""
        del member
        self._first = seed % self._modulus
        return Observation(text=f"#{self._first}")

    def step(self, action: Action) -> Observation:
        """Grade the answer."""
        before, right = self._first, 0
        for character in action.text[: self._length]:
            digit = int(character) if character.isdecimal() else -1
            right += digit == (before + 1) % self._modulus
            before = digit
        return Observation(text="", reward=right / self._length, done=True)

    def close(self) -> None:
        """Nothing is held."""
