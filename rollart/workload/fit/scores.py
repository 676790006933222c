"""Normal scores of a figure's values, and whose they are: the prompt's, the trajectory's or the turn's.

The variance components are moments of the scores s, with mean 0 and variance 1: products of turns of one trajectory
have mean prompt + member, products of trajectories of one prompt have mean prompt + r^2 member * (prompt share of
the turns), products of a trajectory's mean score with its score z of the number of turns have mean r sqrt(member).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from rollart.workload.fit.observed import Draws, Flags, Floats, Indices

LEAST_CORRELATION = 0.05
"""Of a trajectory's mean score with its number of turns; less counts as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """As in `Figure`; `groups_told` is False where no group has two members, and the prompt's share is unknown."""

    prompt: float
    member: float
    turns_correlation: float
    groups_told: bool


def spread_ties(values: Floats) -> Floats:
    """Whole numbers spread evenly over +-1/2 of themselves, so that rounding gives them back with their shares."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(values)), values))
    ordered = values[order]
    _, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    place = np.arange(len(values)) - np.repeat(first, counts)
    spread = np.empty_like(values)
    spread[order] = ordered - 0.5 + (place + 0.5) / np.repeat(counts, counts)
    return spread


def normal_scores(values: Floats) -> Floats:
    """Phi^-1 of each value's rank, of variance 1; ties share their middle rank, and equal values are all 0."""
    if not len(values):
        return values
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    scores -= scores.mean()
    deviation = float(scores.std())
    return np.asarray(scores / deviation if deviation > 1e-9 else np.zeros_like(scores))


def shares_of(
    draws: Draws, scores: Floats, groups: Indices, turn_scores: Floats | None = None, turns_prompt_share: float = 0.0
) -> Shares:
    """Components of the scores; `groups` and `turn_scores` have one entry a trajectory (NaN: not known)."""
    counts = np.bincount(draws.trajectory, minlength=len(groups)).astype(np.float64)
    sums: Floats = np.bincount(draws.trajectory, weights=scores, minlength=len(groups)).astype(np.float64)
    squares: Floats = np.bincount(draws.trajectory, weights=scores**2, minlength=len(groups)).astype(np.float64)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    both = _within_groups(means, counts > 0, groups)
    several = counts > 1
    within = _within_trajectories(sums[several], squares[several], counts[several]) if several.any() else None
    with_turns = 0.0 if turn_scores is None else _with_turns(means, turn_scores, counts)
    prompt = max(0.0, (both or 0.0) - with_turns**2 * turns_prompt_share)
    if within is None:
        return Shares(prompt=min(prompt, 1.0), member=0.0, turns_correlation=0.0, groups_told=both is not None)
    # Turns of one trajectory have all in common that trajectories of one prompt have: pairs of them are more, and say
    # more, than the few groups of some traces.
    prompt = min(prompt, max(0.0, within))
    member = max(0.0, within - prompt, with_turns**2)
    scale = min(1.0, 1.0 / max(1e-9, prompt + member))
    prompt, member = prompt * scale, member * scale
    correlation = float(np.clip(with_turns / np.sqrt(member), -1.0, 1.0)) if member > 0.0 and with_turns else 0.0
    return Shares(prompt=prompt, member=member, turns_correlation=correlation, groups_told=both is not None)


def _within_trajectories(sums: Floats, squares: Floats, counts: Floats) -> float:
    """Mean product of two turns of a trajectory, which weighs as its number of turns."""
    return float(((sums**2 - squares) / (counts - 1.0)).sum() / counts.sum())


def _within_groups(means: Floats, seen: Flags, groups: Indices) -> float | None:
    """Mean product of the means of two trajectories of a group; None where there is no such pair."""
    groups, means = groups[seen], means[seen]
    means = means - (means.mean() if len(means) else 0.0)
    sizes = np.bincount(groups).astype(np.float64)
    products = np.bincount(groups, weights=means) ** 2 - np.bincount(groups, weights=means**2)
    pairs = sizes > 1
    return float((products[pairs] / (sizes[pairs] - 1.0)).sum() / sizes[pairs].sum()) if pairs.any() else None


def _with_turns(means: Floats, turn_scores: Floats, counts: Floats) -> float:
    known = ~np.isnan(turn_scores) & (counts > 0)
    if known.sum() < 3:
        return 0.0
    own = means[known] - means[known].mean()
    found = float((own * turn_scores[known]).mean())
    # Three standard errors of a correlation that is not there.
    noise = 3.0 * float(own.std()) / float(np.sqrt(known.sum()))
    return found if abs(found) > max(LEAST_CORRELATION, noise) else 0.0
