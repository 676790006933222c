"""Quantile functions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from rollart.workload.quantiles import QuantileFunction, Tail, TailFamily, normal_score

tables = st.dictionaries(st.floats(0.001, 0.999), st.floats(0.0, 1e6), min_size=1, max_size=8).map(
    lambda table: dict(zip(sorted(table), sorted(table.values()), strict=True))
)


@settings(max_examples=60)
@given(tables, st.lists(st.floats(-7, 7), min_size=2, max_size=20), st.booleans())
def test_a_quantile_function_never_falls(table: dict[float, float], scores: list[float], tail: bool) -> None:
    law = QuantileFunction(table, tail=Tail(family=TailFamily.PARETO, parameter=1.5) if tail else None)
    values = law.at_all(np.array(sorted(scores)))
    assert (np.diff(values) >= -1e-9 * values[1:]).all()


@settings(max_examples=60)
@given(tables, st.floats(-7, 7))
def test_one_score_and_an_array_of_scores_agree(table: dict[float, float], score: float) -> None:
    law = QuantileFunction(table)
    assert law.at(score) == pytest.approx(law.at_all(np.array([score]))[0], rel=1e-12)


def test_given_quantiles_are_met_exactly() -> None:
    law = QuantileFunction({0.1: 2.0, 0.5: 10.0, 0.99: 400.0})
    assert [law.quantile(p) for p in (0.1, 0.5, 0.99)] == pytest.approx([2.0, 10.0, 400.0])


def test_between_two_quantiles_lies_a_lognormal_piece() -> None:
    law = QuantileFunction({0.5: 10.0, 0.9: 40.0})
    half_way = 0.5 * normal_score(0.9)
    assert law.at(half_way) == pytest.approx(20.0)


def test_a_table_with_a_zero_is_linear() -> None:
    law = QuantileFunction({0.5: 0.0, 0.9: 40.0})
    assert law.at(0.5 * normal_score(0.9)) == pytest.approx(20.0)


def test_without_tail_and_bounds_the_outermost_values_stay() -> None:
    law = QuantileFunction({0.1: 3.0, 0.9: 7.0})
    assert (law.at(-9.0), law.at(9.0)) == pytest.approx((3.0, 7.0))


def test_bounds_close_the_distribution() -> None:
    law = QuantileFunction({0.1: 3.0, 0.9: 7.0}, minimum=1.0, maximum=20.0)
    assert (law.quantile(0.0), law.quantile(1.0)) == pytest.approx((1.0, 20.0))


def test_a_pareto_tail_falls_by_its_exponent() -> None:
    law = QuantileFunction({0.5: 1.0, 0.9: 5.0}, tail=Tail(family=TailFamily.PARETO, parameter=2.0))
    assert law.quantile(1 - 0.1 / 4) == pytest.approx(10.0, rel=1e-3)
    assert law.quantile(1 - 0.1 / 100) == pytest.approx(50.0, rel=1e-3)


def test_a_lognormal_tail_grows_by_sigma() -> None:
    law = QuantileFunction({0.5: 4.0}, tail=Tail(family=TailFamily.LOGNORMAL, parameter=0.7))
    assert law.at(2.0) == pytest.approx(4.0 * math.exp(1.4), rel=1e-9)


def test_a_tail_ends_at_the_maximum() -> None:
    law = QuantileFunction({0.9: 5.0}, tail=Tail(family=TailFamily.PARETO, parameter=1.0), maximum=300.0)
    assert law.at(6.0) == pytest.approx(300.0)


def test_the_mean_of_a_lognormal_is_known() -> None:
    sigma = 0.8
    law = QuantileFunction({p: 3.0 * math.exp(sigma * normal_score(p)) for p in (0.0001, 0.5, 0.9999)})
    assert law.mean() == pytest.approx(3.0 * math.exp(sigma**2 / 2), rel=2e-3)


def test_the_mean_of_draws_is_the_mean() -> None:
    law = QuantileFunction({0.1: 1.0, 0.9: 30.0}, tail=Tail(family=TailFamily.LOGNORMAL, parameter=1.0), maximum=500.0)
    draws = law.at_all(np.random.default_rng(5).standard_normal(200_000))
    assert law.mean() == pytest.approx(draws.mean(), rel=0.02)


def test_only_a_single_value_is_constant() -> None:
    assert QuantileFunction({0.5: 3.0}).constant == 3.0
    assert QuantileFunction({0.1: 3.0, 0.9: 4.0}).constant is None


@pytest.mark.parametrize(
    ("table", "bounds", "message"),
    [
        ({}, {}, "no quantile is given; give at least one, such as {0.5: 10}"),
        ({1.5: 1.0}, {}, "quantile 1.5 is outside [0, 1]"),
        ({0.5: -1.0}, {}, "value -1 at p = 0.5 must be a finite number >= 0"),
        ({0.5: math.nan}, {}, "value nan at p = 0.5 must be a finite number >= 0"),
        ({0.5: 5.0, 0.9: 4.0}, {}, "value 4 at p = 0.9 is below 5; values must not fall as p grows"),
        ({0.5: 5.0}, {"maximum": 4.0}, "value 5 is above max 4"),
        ({0.5: 5.0}, {"minimum": 6.0, "maximum": 4.0}, "min 6 is above max 4"),
    ],
)
def test_a_wrong_table_is_named(table: dict[float, float], bounds: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        QuantileFunction(table, **bounds)
    assert str(caught.value) == message


def test_an_exponential_tail_has_its_mean_excess() -> None:
    tail = Tail(family=TailFamily.EXPONENTIAL, parameter=0.5)
    law = QuantileFunction({0.5: 1.0, 0.9: 10.0}, tail=tail)
    assert law.quantile(0.99) == pytest.approx(10.0 * (1.0 + 0.5 * math.log(10.0)), rel=1e-3)
    above = law.at_all(ndtri(1.0 - 0.1 * (np.arange(20000) + 0.5) / 20000))
    assert above.mean() == pytest.approx(10.0 + 5.0, rel=0.01)


def test_a_reshaped_law_has_the_transformed_values() -> None:
    law = QuantileFunction({0.1: 1.0, 0.9: 10.0})
    doubled = law.reshaped(lambda value: 2.0 * value)
    assert doubled.quantile(0.5) == pytest.approx(2.0 * law.quantile(0.5))
    assert doubled.quantile(0.9) == pytest.approx(20.0)
