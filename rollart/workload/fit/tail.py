"""The tail of a figure: its family is the one under which values that were held out are likeliest.

A family is fitted by maximum likelihood (one parameter, SciPy's bounded minimiser) to the values above a
threshold. Folds are cut by trajectory group, so that a fold holds prompts that the fit has not seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr
from scipy.stats import norm

from rollart.workload.fit.observed import Flags, Floats, Indices
from rollart.workload.quantiles import TailFamily, normal_score

FEWEST_EXCEEDANCES = 50
"""Below, five folds hold ten values each, and families can't be told apart."""
THRESHOLDS = (0.99, 0.98, 0.95, 0.9)
"""Where a tail may begin; the highest with enough values above it does."""
_FOLDS = 5
_BOUNDS = (np.log(0.02), np.log(50.0))
"""Of the logarithm of a parameter."""

LogDensity = Callable[[float, Floats], Floats]


def _pareto(parameter: float, ratio: Floats) -> Floats:
    return np.asarray(np.log(parameter) - (parameter + 1.0) * np.log(ratio))


def _exponential(parameter: float, ratio: Floats) -> Floats:
    return np.asarray(-np.log(parameter) - (ratio - 1.0) / parameter)


def _lognormal(start: float, parameter: float, ratio: Floats) -> Floats:
    """Normal in log(ratio), cut off below its score `start`."""
    log = np.log(ratio)
    return np.asarray(norm.logpdf(start + log / parameter) - np.log(parameter) - log - log_ndtr(-start))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTail:
    """The chosen tail above probability `start`, and what every family scored on held-out values."""

    family: TailFamily
    start: float
    threshold: float
    parameter: float
    exceedances: int
    held_out: Mapping[TailFamily, float]
    """Mean log-density (nats a value, in units of the threshold)."""


def fit_tail(values: Floats, weights: Floats, folds: Indices) -> FittedTail | None:
    """The tail of `values`, or None where they are too few or end at a limit; `folds` numbers a value's group.

    A figure ends at a limit when one in 200 of its values, or two fifths of those above the threshold, equal the
    largest within 0.1 %.
    """
    order = np.argsort(values)
    values, weights, folds = values[order], weights[order], folds[order]
    share = np.cumsum(weights) / weights.sum()
    for start in THRESHOLDS:
        above = share > start
        if int(above.sum()) >= FEWEST_EXCEEDANCES:
            break
    else:
        return None
    threshold = float(np.interp(start, share, values))
    if threshold <= 0.0 or _ends_at_a_limit(values, above):
        return None
    return _choose(values[above] / threshold, weights[above], folds[above] % _FOLDS, start, threshold)


def _ends_at_a_limit(values: Floats, above: Flags) -> bool:
    at_top = int((values >= 0.999 * values[-1]).sum())
    return at_top > max(2.0, 0.005 * len(values)) or at_top > 0.4 * int(above.sum())


def _choose(ratio: Floats, weights: Floats, folds: Indices, start: float, threshold: float) -> FittedTail | None:
    ratio = np.maximum(ratio, 1.0 + 1e-9)
    families: dict[TailFamily, LogDensity] = {
        TailFamily.LOGNORMAL: partial(_lognormal, normal_score(start)),
        TailFamily.PARETO: _pareto,
        TailFamily.EXPONENTIAL: _exponential,
    }
    held_out = {family: _held_out(density, ratio, weights, folds) for family, density in families.items()}
    best = max(held_out, key=lambda family: held_out[family])
    return FittedTail(
        family=best,
        start=start,
        threshold=threshold,
        parameter=_likeliest(families[best], ratio, weights),
        exceedances=len(ratio),
        held_out=held_out,
    )


def _held_out(density: LogDensity, ratio: Floats, weights: Floats, folds: Indices) -> float:
    total = 0.0
    for fold in range(_FOLDS):
        out = folds == fold
        if out.all() or not out.any():
            continue
        parameter = _likeliest(density, ratio[~out], weights[~out])
        total += float((weights[out] * density(parameter, ratio[out])).sum())
    return total / float(weights.sum())


def _likeliest(density: LogDensity, ratio: Floats, weights: Floats) -> float:
    def cost(log_parameter: float) -> float:
        return -float((weights * density(float(np.exp(log_parameter)), ratio)).sum())

    found = minimize_scalar(cost, bounds=_BOUNDS, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))
