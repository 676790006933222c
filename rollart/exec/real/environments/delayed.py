"""Any environment, slowed down: each step sleeps for a while that is drawn from a heavy-tailed distribution."""

import random
import time
from collections.abc import Mapping
from typing import Any

from rollart.exec.real.environments.protocol import Action, Observation
from rollart.exec.real.environments.shipped import make_environment


def delay_s(mean_s: float, tail: float, chance: float) -> float:
    """Pareto: P(X > x) = (least / x)^tail with least = mean (tail - 1) / tail; `chance` = P(X > x), in (0, 1]."""
    return float(mean_s * (tail - 1.0) / tail * chance ** (-1.0 / tail))


class Delayed:
    """Steps of an environment take `mean_s` seconds longer on average.

    The delay belongs to prompt, member and turn, so that two runs meet the same ones. The smaller `tail` (above 1), the
    heavier the tail; from 2 down the variance is infinite.
    """

    def __init__(
        self, *, environment: str, mean_s: float, tail: float = 2.5, arguments: Mapping[str, Any] | None = None
    ) -> None:
        if mean_s < 0:
            raise ValueError(f"mean_s is {mean_s}; must be 0 or more")
        if tail <= 1:
            raise ValueError(f"tail is {tail}; must be above 1")
        self._inner = make_environment(environment, arguments or {})
        self._mean_s = mean_s
        self._tail = tail
        self._luck = random.Random(0)

    def reset(self, seed: int, member: int) -> Observation:
        """Begin an episode, at once."""
        self._luck = random.Random(f"{seed}/{member}")
        return self._inner.reset(seed, member)

    def step(self, action: Action) -> Observation:
        """Sleep, then carry out the action."""
        time.sleep(delay_s(self._mean_s, self._tail, 1.0 - self._luck.random()))
        return self._inner.step(action)

    def close(self) -> None:
        """Close the environment."""
        self._inner.close()
