"""Latent normals: how a figure's draws depend on its prompt, its trajectory and its turn.

A latent score is sqrt(prompt share) * prompt + sqrt(member share) * member + sqrt(rest) * turn, of independent
standard normals; it is again a standard normal, and the figure's quantile function makes a value of it. The member's
normal may in turn be r * (score of the number of turns) + sqrt(1 - r^2) * noise.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollart.workload.profile import Figure
from rollart.workload.quantiles import QuantileFunction

_ROW_WIDTH = 64.0
"""Distance in score between the laws of two figures; no score lies outside +-32."""


class TrajectoryLatent:
    """A figure with one draw per trajectory: what is not the prompt's share is the member's."""

    __slots__ = ("_law", "_member", "_prompt")

    def __init__(self, figure: Figure) -> None:
        self._law = figure.law
        self._prompt = math.sqrt(figure.prompt_share)
        self._member = math.sqrt(1.0 - figure.prompt_share)

    def value(self, prompt_score: float, member_noise: float) -> float:
        """The value of one trajectory."""
        return self._law.at(self.score(prompt_score, member_noise))

    def score(self, prompt_score: float, member_noise: float) -> float:
        """The standard normal behind the value."""
        return self._prompt * prompt_score + self._member * member_noise

    def at(self, score: float) -> float:
        """The value at a score."""
        return self._law.at(score)


class TurnLatents:
    """Several figures with one draw per turn, evaluated at once.

    The quantile functions stand side by side on one axis, so that a single interpolation serves all of them:
    calls to numpy, not arithmetic, are what a short trajectory costs.
    """

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._prompt = [math.sqrt(figure.prompt_share) for figure in figures]
        members = [math.sqrt(figure.member_share) for figure in figures]
        with_turns = [figure.turns_correlation for figure in figures]
        self._member = [m * math.sqrt(1.0 - r * r) for m, r in zip(members, with_turns, strict=True)]
        self._with_turns = [m * r for m, r in zip(members, with_turns, strict=True)]
        rest = [max(0.0, 1.0 - figure.prompt_share - figure.member_share) for figure in figures]
        self._turn = np.sqrt(np.array(rest))[:, np.newaxis]
        self._factors = [(row, figure.by_turn) for row, figure in enumerate(figures) if figure.by_turn is not None]
        self._least_turns = sorted({turns for figure in figures for turns in figure.from_turns})
        self._laws = [_side_by_side([figure.law_at(turns) for figure in figures]) for turns in (0, *self._least_turns)]

    def values(
        self,
        prompt_score: float,
        turns_score: float,
        member_noise: Sequence[float],
        turn_noise: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """One row per figure, one column per turn; `turn_noise` has that shape, `member_noise` one per figure.

        `turns_score` is the trajectory's score of its number of turns.
        """
        levels = [
            row * _ROW_WIDTH + prompt * prompt_score + with_turns * turns_score + member * noise
            for row, (prompt, with_turns, member, noise) in enumerate(
                zip(self._prompt, self._with_turns, self._member, member_noise, strict=True)
            )
        ]
        scores = turn_noise * self._turn + np.array(levels)[:, np.newaxis]
        laws = self._laws[bisect_right(self._least_turns, turn_noise.shape[1])]
        values: NDArray[np.float64] = np.interp(scores, laws.axis, laws.values)
        for row, logarithmic in enumerate(laws.logarithmic):
            if logarithmic:
                np.exp(values[row], out=values[row])
        for row, factors in self._factors:
            values[row] *= factors.upto(values.shape[1])
        return values


class _Laws(NamedTuple):
    """One law a row."""

    axis: NDArray[np.float64]
    values: NDArray[np.float64]
    logarithmic: list[bool]


def _side_by_side(laws: Sequence[QuantileFunction]) -> _Laws:
    """Nodes of all laws on one axis; each is level beyond its outermost nodes."""
    axis: list[float] = []
    values: list[float] = []
    for row, law in enumerate(laws):
        scores = [-0.49 * _ROW_WIDTH, *law.scores, 0.49 * _ROW_WIDTH]
        axis += [row * _ROW_WIDTH + score for score in scores]
        values += [law.values[0], *law.values, law.values[-1]]
    return _Laws(np.array(axis), np.array(values), [law.logarithmic for law in laws])
