"""Scores, ties, and variance components."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.workload.fit.observed import Draws
from rollart.workload.fit.scores import normal_scores, shares_of, spread_ties


@settings(max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=60))
def test_spread_ties_round_back_to_what_they_were(values: list[int]) -> None:
    spread = spread_ties(np.array(values, dtype=np.float64))
    assert np.rint(spread).tolist() == values
    assert len(set(spread.tolist())) == len(values)


def test_scores_have_mean_0_and_variance_1_and_equal_values_are_0() -> None:
    scores = normal_scores(np.exp(np.arange(50.0)))
    assert (scores.mean(), scores.std()) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    assert normal_scores(np.full(4, 7.0)).tolist() == [0.0] * 4


def test_components_of_known_scores() -> None:
    luck = np.random.default_rng(5)
    groups = np.repeat(np.arange(400), 5)
    own = 0.5 * luck.standard_normal(400)[groups] + 0.6 * luck.standard_normal(2000)
    trajectory = np.repeat(np.arange(2000), 6)
    scores = own[trajectory] + np.sqrt(1 - 0.61) * luck.standard_normal(12000)
    draws = Draws(values=scores, trajectory=trajectory, turn=np.tile(np.arange(6), 2000))
    shares = shares_of(draws, scores, groups)
    assert (shares.prompt, shares.member) == (pytest.approx(0.25, abs=0.04), pytest.approx(0.36, abs=0.04))
    assert (shares.turns_correlation, shares.groups_told) == (0.0, True)


def test_groups_of_one_do_not_tell_the_prompts_share() -> None:
    scores = np.array([1.0, 1.0, -1.0, -1.0])
    draws = Draws(values=scores, trajectory=np.array([0, 0, 1, 1]), turn=np.array([0, 1, 0, 1]))
    shares = shares_of(draws, scores, np.array([0, 1]))
    assert (shares.prompt, shares.member, shares.groups_told) == (0.0, 1.0, False)
