"""Two plans under common luck: is one better, by how much, and can it be told?

Outcomes are compared seed by seed as logarithms of their ratio, which is right for positive quantities with relative
noise. The interval of the mean is Student's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95
"""One-sided, where nothing else is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much worse one plan is than another, relatively; negative: better."""

    mean: float
    low: float
    """Lower end of the mean at the confidence; minus infinity where one seed is all there is."""
    high: float

    @property
    def clear(self) -> bool:
        """Whether it is worse beyond doubt."""
        return self.low > 0


def difference(worse: Sequence[float], better: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """Of losses (smaller is better, positive or infinite) under the same seeds; an infinite one is worse for sure."""
    if any(math.isinf(loss) for loss in worse):
        return Difference(mean=math.inf, low=math.inf, high=math.inf)
    logs = np.log(np.asarray(worse)) - np.log(np.asarray(better))
    mean = float(logs.mean())
    if len(logs) < 2:
        return Difference(mean=math.expm1(mean), low=-math.inf, high=math.inf)
    half = float(stdtrit(len(logs) - 1, confidence)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Difference(mean=math.expm1(mean), low=math.expm1(mean - half), high=math.expm1(mean + half))
