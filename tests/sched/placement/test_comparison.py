"""Differences under common luck."""

import math

import pytest

from rollart.sched.placement.comparison import difference


def test_equal_ratios_leave_no_doubt():
    found = difference([11.0, 22.0, 5.5], [10.0, 20.0, 5.0])
    assert found.mean == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)
    assert found.clear


def test_one_seed_is_never_clear():
    found = difference([20.0], [10.0])
    assert found.mean == pytest.approx(1.0)
    assert not found.clear
    assert found.high == math.inf


def test_the_interval_is_students():
    # Logarithms 0.0 and 0.2: mean 0.1, standard error 0.1; one-sided 95 % of one degree of freedom is 6.3138.
    found = difference([1.0, math.exp(0.2)], [1.0, 1.0])
    assert found.low == pytest.approx(math.expm1(0.1 - 0.63138), rel=1e-4)
    assert found.high == pytest.approx(math.expm1(0.1 + 0.63138), rel=1e-4)
    assert not found.clear


def test_less_confidence_is_a_narrower_interval():
    assert difference([1.0, 1.2], [1.0, 1.0], 0.8).low > difference([1.0, 1.2], [1.0, 1.0]).low


def test_a_failure_is_worse_for_sure():
    assert difference([math.inf, 1.0], [5.0, 5.0]).clear
