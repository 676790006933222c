"""Whether, and how, a figure's level changes along a trajectory.

A turn is compared with the mean of its own trajectory, since only long trajectories have late turns. Factors and
trajectory levels are fitted in turn (they are the rows and columns of one table). They are kept only where, fitted
to half of the groups, they bring the other half closer to its levels.
"""

import numpy as np

from rollart.workload.fit.observed import Draws, Flags, Floats, Indices

FEWEST_DRAWS = 30
"""Of one bucket of turns."""
LEAST_GAIN = 0.01
"""Part of the held-out variance of log(value + 1) within trajectories that factors must explain."""
_EDGES = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181, 6765)
"""First turns of the buckets."""
_ROUNDS = 5
_BOUNDS = (0.05, 20.0)


def turn_factors(draws: Draws, groups: Indices) -> dict[int, float] | None:
    """{turn: factor}, of mean 1 over all draws; None where the turn does not matter."""
    if not len(draws) or not draws.values.any():
        return None
    buckets = _buckets(draws.turn)
    if buckets.max() < 1:
        return None
    half = groups[draws.trajectory] % 2 == 0
    gains = [_gain(draws, buckets, fitted, ~fitted) for fitted in (half, ~half)]
    if min(gains) <= 0.0 or sum(gains) < 2.0 * LEAST_GAIN:
        return None
    factors = _factors(draws, buckets)
    turns = [int(np.median(draws.turn[buckets == bucket])) for bucket in range(len(factors))]
    return {turn: float(factor) for turn, factor in zip(turns, factors, strict=True)}


def _buckets(turns: Indices) -> Indices:
    """Number of the bucket of each turn; a bucket with few draws is one with that before it."""
    raw = np.searchsorted(np.array(_EDGES), turns, side="right") - 1
    merged = np.zeros(int(raw.max()) + 1, dtype=np.int64)
    current, held = -1, FEWEST_DRAWS
    for bucket, count in enumerate(np.bincount(raw).tolist()):
        if held >= FEWEST_DRAWS and count >= FEWEST_DRAWS:
            current, held = current + 1, 0
        elif current < 0 and count:
            current, held = 0, 0
        held += count
        merged[bucket] = max(current, 0)
    return np.asarray(merged[raw])


def _factors(draws: Draws, buckets: Indices) -> Floats:
    """One factor a bucket."""
    size = int(buckets.max()) + 1
    factors = np.ones(size)
    for _ in range(_ROUNDS):
        expected = _levels(draws, factors[buckets])
        seen = np.bincount(buckets, weights=draws.values, minlength=size)
        against = np.bincount(buckets, weights=expected, minlength=size)
        factors = np.clip(np.divide(seen, against, out=np.ones(size), where=against > 0), *_BOUNDS)
        factors /= factors[buckets].mean()
    return factors


def _levels(draws: Draws, factors: Floats) -> Floats:
    """Of each draw, the level of its trajectory: all its values over all its factors."""
    own = np.bincount(draws.trajectory, weights=draws.values)
    against = np.bincount(draws.trajectory, weights=factors)
    return np.asarray(own[draws.trajectory] / against[draws.trajectory])


def _gain(
    draws: Draws,
    buckets: Indices,
    fitted: Flags,
    out: Flags,
) -> float:
    """Part of the variance of log(value + 1) around the levels that factors take away on what was held out."""
    if not fitted.any() or not out.any():
        return 0.0
    factors = np.ones(int(buckets.max()) + 1)
    own = _factors(draws.of(fitted), buckets[fitted])
    factors[: len(own)] = own
    held, bucket = draws.of(out), buckets[out]
    flat = _deviation(held, np.ones(len(held)))
    shaped = _deviation(held, factors[bucket])
    return 1.0 - shaped / flat if flat > 0.0 else 0.0


def _deviation(draws: Draws, factors: Floats) -> float:
    return float((np.log1p(draws.values) - np.log1p(_levels(draws, factors) * factors)).var())
