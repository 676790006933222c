"""Whether, and where, a figure's law changes with the number of turns of its trajectory.

Short and long trajectories of one task may be of different kinds, such as a question that is answered at once and a
job with tools. One number, how a figure's normal scores go with those of the turns, does not say that; a law for each
class of trajectories does. Neighbouring classes stay apart only where one turn of each trajectory, picked at random,
tells them apart by more than that number would.
"""

import numpy as np
from scipy.stats import ks_2samp

from rollart.workload.fit.observed import Draws, Floats, Indices
from rollart.workload.fit.scores import normal_scores, spread_ties

FEWEST_TRAJECTORIES = 40
"""Of one class."""
LEAST_DISTANCE = 0.15
"""Between the distribution functions of neighbouring classes (the statistic of Kolmogorov and Smirnov)."""
LARGEST_P = 0.01
"""Of the test that both are one."""
_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)
"""Fewest turns of the classes that are tried."""


def turn_classes(draws: Draws, turns: Indices) -> list[int]:
    """Fewest turns of each class, rising; one entry where there is one law. `turns` has one entry a trajectory."""
    picked = _one_of_each(draws)
    counts = turns[draws.trajectory[picked]]
    values = _beyond_correlation(
        normal_scores(draws.values[picked]), normal_scores(spread_ties(counts.astype(np.float64)))
    )
    edges = _filled(counts)
    kept = edges[:1]
    for place, edge in enumerate(edges[1:], start=1):
        until = edges[place + 1] if place + 1 < len(edges) else np.inf
        before = values[(counts >= kept[-1]) & (counts < edge)]
        if _apart(before, values[(counts >= edge) & (counts < until)]):
            kept.append(edge)
    return kept


def class_of(turns: Indices, classes: list[int]) -> Indices:
    """Index of the class of each number of turns."""
    return np.maximum(np.searchsorted(np.array(classes), turns, side="right") - 1, 0)


def _one_of_each(draws: Draws) -> Indices:
    """Place of one draw of each trajectory, by chance."""
    shuffled = np.random.default_rng(0).permutation(len(draws))
    _, first = np.unique(draws.trajectory[shuffled], return_index=True)
    return np.asarray(shuffled[first])


def _beyond_correlation(scores: Floats, turn_scores: Floats) -> Floats:
    """What is left of scores without what is linear in those of the turns; ties are spread, as in a draw."""
    return np.asarray(scores - float((scores * turn_scores).mean()) * turn_scores)


def _filled(counts: Indices) -> list[int]:
    """Edges between which there are enough trajectories each; the first is the smallest number of turns."""
    edges: list[int] = []
    for edge in _EDGES:
        above = int((counts >= edge).sum())
        below = int(((counts >= edges[-1]) & (counts < edge)).sum()) if edges else len(counts) - above
        if not edges or (below >= FEWEST_TRAJECTORIES and above >= FEWEST_TRAJECTORIES):
            edges.append(edge)
    return edges


def _apart(before: Floats, behind: Floats) -> bool:
    found = ks_2samp(before, behind)
    return bool(found.statistic >= LEAST_DISTANCE and found.pvalue <= LARGEST_P)
