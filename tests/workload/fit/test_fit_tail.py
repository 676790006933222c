"""The family of a tail is found by values that were held out."""

import numpy as np
import pytest
from scipy.special import ndtri

from rollart.workload.fit.tail import fit_tail
from rollart.workload.quantiles import TailFamily

COUNT = 20000
PLACES = (np.arange(COUNT) + 0.5) / COUNT
EQUAL = np.ones(COUNT)
FOLDS = np.random.default_rng(2).permutation(COUNT)


def test_a_pareto_tail_is_found() -> None:
    found = fit_tail((1.0 - PLACES) ** (-1 / 2.5), EQUAL, FOLDS)
    assert found is not None
    assert (found.family, found.start, found.exceedances) == (TailFamily.PARETO, 0.99, 200)
    assert found.parameter == pytest.approx(2.5, rel=0.05)
    assert found.held_out[TailFamily.PARETO] == max(found.held_out.values())


def test_an_exponential_tail_is_found() -> None:
    places = (np.arange(900) + 0.5) / 900
    found = fit_tail(1.0 + 5.0 * np.maximum(0.0, -np.log(1.0 - places) - np.log(10.0)), np.ones(900), FOLDS[:900])
    assert found is not None
    assert (found.family, found.start, found.exceedances) == (TailFamily.EXPONENTIAL, 0.9, 90)
    assert found.parameter == pytest.approx(5.0, rel=0.05)


def test_a_lognormal_is_one_in_its_tail() -> None:
    found = fit_tail(np.exp(1.3 * ndtri(PLACES)), EQUAL, FOLDS)
    assert found is not None and found.family is TailFamily.LOGNORMAL
    assert found.parameter == pytest.approx(1.3, rel=0.05)


def test_few_values_have_no_tail() -> None:
    assert fit_tail(np.arange(1.0, 400.0), np.ones(399), np.arange(399)) is None


def test_what_ends_at_a_limit_has_no_tail() -> None:
    assert fit_tail(np.minimum((1.0 - PLACES) ** -0.5, 8.0), EQUAL, FOLDS) is None


def test_the_tail_begins_lower_where_there_are_fewer_values() -> None:
    found = fit_tail((1.0 - PLACES[::20]) ** -0.5, np.ones(1000), FOLDS[:1000])
    assert found is not None and (found.start, found.exceedances) == (0.95, 50)
