"""Distributions given by a few quantiles, with an optional heavy tail.

A quantile function is kept over the *normal score* z = Phi^-1(p) instead of p, so that correlated draws (a
copula of normals) need no detour through p. Between two given quantiles the logarithm of the value is linear in z,
which is a lognormal piece; where a given value is 0, the value itself is linear in z. Outside the given p the
value goes on to the minimum or maximum, which count as p = 0 and p = 1, or along the tail; where there is neither
it stays at the outermost quantile. p = 0 and p = 1 stand at z = -4 and 4, one in 31,000.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

_EXTREME_SCORE = 4.0
_TAIL_END_SCORE = 6.0
"""The largest draw of a tail: one in 10^9."""
_TAIL_STEP = 0.05


class TailFamily(StrEnum):
    """Shape of the distribution above the last given quantile."""

    PARETO = "pareto"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A tail from the highest given quantile on.

    `parameter` is Pareto's alpha (P(X > x) falls as x^-alpha), the lognormal's sigma, or the exponential's mean
    excess over the value where the tail begins, in units of that value.
    """

    family: TailFamily
    parameter: float

    def factor(self, score: float, start: float) -> float:
        """Value at normal score `score` over the value at `start`."""
        if self.family is TailFamily.LOGNORMAL:
            return math.exp(self.parameter * (score - start))
        rarer = float(log_ndtr(-start) - log_ndtr(-score))
        if self.family is TailFamily.EXPONENTIAL:
            return 1.0 + self.parameter * rarer
        return float((ndtr(-start) / ndtr(-score)) ** (1.0 / self.parameter))


class QuantileFunction:
    """The inverse of a distribution function, evaluated at normal scores."""

    def __init__(
        self,
        quantiles: Mapping[float, float],
        *,
        tail: Tail | None = None,
        minimum: float = 0.0,
        maximum: float = math.inf,
    ) -> None:
        """Quantiles {p: value}; ValueError if p leaves [0, 1] or values fall, are negative or not finite."""
        points = sorted(quantiles.items())
        check_quantiles(points, minimum, maximum)
        nodes = [(normal_score(p), value) for p, value in points]
        if minimum > 0.0 and points[0][0] > 0.0:
            nodes.insert(0, (-_EXTREME_SCORE, minimum))
        if tail is not None:
            nodes += _tail_nodes(tail, *nodes[-1])
        elif maximum < math.inf and points[-1][0] < 1.0:
            nodes.append((_EXTREME_SCORE, maximum))
        self._keep([(z, min(max(value, minimum), maximum)) for z, value in nodes])

    def reshaped(self, transform: Callable[[float], float], scores: Sequence[float] = ()) -> "QuantileFunction":
        """The law of the transformed values; `transform` must not fall. It is met at the nodes and at `scores`."""
        other = QuantileFunction.__new__(QuantileFunction)
        other._keep([(z, transform(self.at(z))) for z in sorted({*self.scores, *scores})])
        return other

    def _keep(self, clipped: list[tuple[float, float]]) -> None:
        self.logarithmic = all(value > 0 for _, value in clipped)
        """Whether `values` are natural logarithms."""
        self.scores = [z for z, _ in clipped]
        """Normal scores of the nodes, rising."""
        self.values = [math.log(v) if self.logarithmic else v for _, v in clipped]
        """At the nodes; linear between them, level beyond."""
        self._score_array = np.array(self.scores)
        self._value_array = np.array(self.values)
        self.constant = clipped[0][1] if clipped[0][1] == clipped[-1][1] else None
        """The value, where there is only one."""

    def at(self, score: float) -> float:
        """Value at one normal score."""
        scores, values = self.scores, self.values
        right = bisect_right(scores, score)
        if right == 0:
            value = values[0]
        elif right == len(scores):
            value = values[-1]
        else:
            low, base = scores[right - 1], values[right - 1]
            value = base + (values[right] - base) * (score - low) / (scores[right] - low)
        return math.exp(value) if self.logarithmic else value

    def at_all(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at an array of normal scores."""
        values = np.interp(scores, self._score_array, self._value_array)
        return np.asarray(np.exp(values)) if self.logarithmic else values

    def quantile(self, p: float) -> float:
        """Value below which a share `p` of the draws lies."""
        return self.at(normal_score(p))

    def mean(self) -> float:
        """Mean of the draws, by the trapezoid rule over normal scores from -8 to 8."""
        scores = np.linspace(-8.0, 8.0, 8001)
        density = np.exp(-0.5 * scores**2) / math.sqrt(2.0 * math.pi)
        return float(np.trapezoid(self.at_all(scores) * density, scores))


def normal_score(p: float) -> float:
    """Phi^-1(p), with p = 0 and p = 1 at -4 and 4."""
    return float(min(max(ndtri(p), -_EXTREME_SCORE), _EXTREME_SCORE))


def check_quantiles(points: list[tuple[float, float]], minimum: float, maximum: float) -> None:
    """ValueError unless sorted `points` (p, value) make a quantile function within [minimum, maximum]."""
    if not points:
        raise ValueError("no quantile is given; give at least one, such as {0.5: 10}")
    if minimum > maximum:
        raise ValueError(f"min {minimum:g} is above max {maximum:g}")
    last = minimum
    for p, value in points:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"quantile {p:g} is outside [0, 1]")
        if not math.isfinite(value) or value < 0.0:
            raise ValueError(f"value {value:g} at p = {p:g} must be a finite number >= 0")
        if value < last:
            raise ValueError(f"value {value:g} at p = {p:g} is below {last:g}; values must not fall as p grows")
        last = value
    if last > maximum:
        raise ValueError(f"value {last:g} is above max {maximum:g}")


def _tail_nodes(tail: Tail, start: float, value: float) -> list[tuple[float, float]]:
    steps = math.ceil((_TAIL_END_SCORE - start) / _TAIL_STEP)
    scores = [start + (_TAIL_END_SCORE - start) * step / steps for step in range(1, steps + 1)]
    return [(score, value * tail.factor(score, start)) for score in scores]
