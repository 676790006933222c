"""Fits one figure: quantiles, tail, correlations. The result has the keys of a profile file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from rollart.workload.by_turn import TurnFactors
from rollart.workload.fit.observed import Draws, Floats, Indices
from rollart.workload.fit.scores import Shares, normal_scores, shares_of, spread_ties
from rollart.workload.fit.tail import FittedTail, fit_tail
from rollart.workload.fit.tail_end import tail_end
from rollart.workload.fit.turn_classes import class_of, turn_classes
from rollart.workload.fit.turn_factors import turn_factors
from rollart.workload.quantiles import normal_score

_SCORES = np.arange(-3.2, 3.21, 0.1)
"""Where quantiles are read: a tenth of a standard deviation apart, from one in 1,500 to one in 1,500."""
_TOLERANCE = 0.01
"""Largest relative error that leaving out a quantile may make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a figure is fitted against; the arrays have one entry a trajectory."""

    groups: Indices
    lengths: Indices
    """Number of turns."""
    turn_scores: Floats
    """Normal score of the number of turns; NaN where it is not known."""
    turns_prompt_share: float
    per_turn: bool
    grouped: bool
    """Whether members of a group may differ; a prompt's tokens are the prompt's alone."""
    whole: bool
    """Whether the figure's values are whole numbers."""
    least: float
    """Smallest value that a profile allows."""


def fit_figure(draws: Draws, context: Context, seen: str) -> dict[str, Any]:
    """Keys of a figure; `seen` says what the values are, for the source. There must be at least one value."""
    factors = turn_factors(draws, context.groups) if context.per_turn else None
    level = np.ones(len(draws)) if factors is None else TurnFactors(factors).upto(int(draws.turn.max()) + 1)[draws.turn]
    flat = replace(draws, values=draws.values / level)
    classes = turn_classes(flat, context.lengths) if context.per_turn else [1]
    own_class = class_of(context.lengths, classes)[draws.trajectory]
    shares = _shares(flat, own_class, context)
    values = np.maximum(spread_ties(draws.values) / level if context.whole else flat.values, context.least)
    weights = _weights(draws, equal_trajectories=bool(shares.turns_correlation))
    laws = {
        least: _law(values[chosen], weights[chosen], context.groups[draws.trajectory[chosen]])
        for least, chosen in ((least, own_class == index) for index, least in enumerate(classes))
    }
    keys = laws[classes[0]].keys | _share_keys(shares, context.per_turn)
    if factors is not None:
        keys["by_turn"] = {turn: _rounded(factor) for turn, factor in factors.items()}
    if len(classes) > 1:
        keys["from_turns"] = {least: laws[least].keys for least in classes[1:]}
    keys["source"] = _source(seen, shares, laws)
    return keys


def _shares(flat: Draws, own_class: Indices, context: Context) -> Shares:
    """Of the scores within each class; where there are several, how a figure goes with the turns is in their laws."""
    scores = np.empty(len(flat))
    for index in range(int(own_class.max()) + 1):
        scores[own_class == index] = normal_scores(flat.values[own_class == index])
    correlated = context.per_turn and not own_class.any()
    turn_scores = context.turn_scores if correlated else None
    shares = shares_of(flat, scores, context.groups, turn_scores, context.turns_prompt_share)
    return shares if context.grouped else replace(shares, prompt=0.0, groups_told=True)


def _weights(draws: Draws, *, equal_trajectories: bool) -> Floats:
    """Where a value goes with the number of turns, the law is that of a turn of a trajectory drawn at random."""
    if not equal_trajectories:
        return np.ones(len(draws))
    counts = np.bincount(draws.trajectory)
    return np.asarray(1.0 / counts[draws.trajectory])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """Quantiles and tail, as keys of a profile."""

    keys: dict[str, Any]
    tail: FittedTail | None


def _law(values: Floats, weights: Floats, groups: Indices) -> _Law:
    tail = fit_tail(values, weights, groups)
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    places = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    points = _quantile_points(values, places, tail)
    keys: dict[str, Any] = {"quantiles": {_rounded(p, 6): _rounded(value) for p, value in _thinned(points)}}
    if tail is not None:
        keys["tail"] = {"family": str(tail.family), "from": tail.start, "parameter": _rounded(tail.parameter)}
        keys["max"] = _rounded(tail_end(tail, values, weights))
    return _Law(keys=keys, tail=tail)


def _quantile_points(values: Floats, places: Floats, tail: FittedTail | None) -> list[tuple[float, float]]:
    """(p, value): the smallest, a grid of normal scores, and the largest or where the tail begins."""
    low, high = float(places[0]), float(places[-1])
    end = (high, float(values[-1])) if tail is None else (tail.start, tail.threshold)
    grid = ndtr(_SCORES)
    inside = grid[(grid > low) & (grid < end[0] - 1e-9)]
    found = np.interp(inside, places, values)
    points = [(float(p), min(float(value), end[1])) for p, value in zip(inside, found, strict=True)]
    first = [(low, float(values[0]))] if low < end[0] else []
    return [*first, *points, end]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Fewer points, such that interpolation between them meets all others within the tolerance."""
    if len(points) < 3:
        return points
    scores = np.array([normal_score(p) for p, _ in points])
    values = np.array([value for _, value in points])
    axis = np.log(values) if values[0] > 0.0 else values
    kept, spans = {0, len(points) - 1}, [(0, len(points) - 1)]
    while spans:
        left, right = spans.pop()
        middle = np.arange(left + 1, right)
        if not len(middle):
            continue
        line = np.interp(scores[middle], scores[[left, right]], axis[[left, right]])
        straight = np.exp(line) if values[0] > 0.0 else line
        error = np.abs(straight - values[middle]) - _TOLERANCE * values[middle]
        worst = int(middle[int(error.argmax())])
        if error.max() > 1e-9:
            kept.add(worst)
            spans += [(left, worst), (worst, right)]
    return [points[index] for index in sorted(kept)]


def _share_keys(shares: Shares, per_turn: bool) -> dict[str, Any]:
    keys = {"prompt_share": round(shares.prompt, 3)}
    if per_turn:
        keys["member_share"] = round(min(shares.member, 1.0 - keys["prompt_share"]), 3)
        if round(shares.turns_correlation, 3) and keys["member_share"]:
            keys["turns_correlation"] = round(shares.turns_correlation, 3)
    return {name: value for name, value in keys.items() if value}


def _source(seen: str, shares: Shares, laws: Mapping[int, _Law]) -> str:
    parts = [seen]
    if not shares.groups_told:
        parts.append("no group has two members, so the prompt's share is not known")
    if shares.turns_correlation:
        parts.append("of a turn of a trajectory drawn at random")
    if len(laws) > 1:
        parts.append(f"laws of trajectories of {', '.join(map(str, laws))} turns and more")
    for least, law in laws.items():
        if law.tail is not None:
            scored = ", ".join(f"{family} {score:.3f}" for family, score in law.tail.held_out.items())
            place = f"from {least} turns, " if len(laws) > 1 else ""
            parts.append(f"{place}tail of {law.tail.exceedances} values, held-out log-likelihood a value: {scored}")
    return "; ".join(parts)


def _rounded(value: float, digits: int = 5) -> float:
    return float(f"{value:.{digits}g}")
