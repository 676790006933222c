"""Where a tail ends. Without an end the mean of a heavy one is that of values which nobody has seen, or infinite.

The end is the value at which the mean of the tail, cut there, is the mean of the values seen above the threshold. It is
not less than the largest value seen, nor more than the value expected once in ten times as many.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from rollart.workload.fit.observed import Floats
from rollart.workload.fit.tail import FittedTail
from rollart.workload.quantiles import Tail, normal_score

_BEYOND = 10.0
_SCORES_TO = 8.0
_STEPS = 800


def tail_end(tail: FittedTail, values: Floats, weights: Floats) -> float:
    """Largest value of the tail; `values` rise."""
    start = normal_score(tail.start)
    law = Tail(family=tail.family, parameter=tail.parameter)
    seen = float(values[-1]) / tail.threshold
    rarest = normal_score(1.0 - (1.0 - tail.start) / (_BEYOND * tail.exceedances))
    trusted = law.factor(rarest, start)
    if trusted <= seen:
        return float(values[-1])
    above = values > tail.threshold
    wanted = float(np.average(values[above], weights=weights[above])) / tail.threshold
    scores = np.linspace(start, _SCORES_TO, _STEPS)
    factors = np.array([law.factor(float(score), start) for score in scores])
    chance = np.exp(log_ndtr(-scores) - log_ndtr(-start))

    def excess(end: float) -> float:
        """Mean of the tail cut at `end`, less the mean seen."""
        cut = np.minimum(factors, end)
        return float(-np.trapezoid(cut, chance)) + end * float(chance[-1]) - wanted

    if excess(seen) >= 0.0:
        return float(values[-1])
    if excess(trusted) <= 0.0:
        return trusted * tail.threshold
    return float(brentq(excess, seen, trusted)) * tail.threshold
