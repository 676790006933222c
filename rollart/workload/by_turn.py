"""How a figure's level changes along a trajectory."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_FIRST_BLOCK = 64


class TurnFactors:
    """Factors at a few turns; between them their logarithm is linear in the turn, beyond them they are level."""

    def __init__(self, factors: Mapping[int, float]) -> None:
        """{turn, from 0: factor}; ValueError unless there is one, turns are >= 0 and factors in (0, 1000]."""
        if not factors:
            raise ValueError("by_turn is empty; give at least one factor, such as {0: 1.5, 10: 1}")
        for turn, factor in factors.items():
            if turn < 0:
                raise ValueError(f"by_turn names turn {turn}; turns count from 0")
            if not 0.0 < factor <= 1000.0:
                raise ValueError(f"by_turn[{turn}] is {factor:g}; a factor must be > 0 and <= 1000")
        self.points = dict(sorted(factors.items()))
        """{turn: factor}, turns rising."""
        self._turns = np.array(list(self.points), dtype=np.float64)
        self._logs = np.log(np.array(list(self.points.values()), dtype=np.float64))
        self._known = self._evaluate(_FIRST_BLOCK)

    def upto(self, turns: int) -> NDArray[np.float64]:
        """Factors of the first `turns` turns; not to be written to."""
        if turns > len(self._known):
            self._known = self._evaluate(max(turns, 2 * len(self._known)))
        return self._known[:turns]

    def _evaluate(self, turns: int) -> NDArray[np.float64]:
        return np.asarray(np.exp(np.interp(np.arange(turns), self._turns, self._logs)))
