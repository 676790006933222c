"""What points yield in a step, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from rollart.sched.placement.columns import drain_columns, steady_columns
from rollart.sched.placement.draining import Drain
from rollart.sched.placement.points import Point
from tests.sched.placement.worlds import instance_of

POINT = Point(kind=0, task=0, batch=4, rate=0.5, concurrency=6.0, pace_s=0.01, rebuild_s=20.0, cached=True)


@pytest.fixture(scope="module")
def demand():
    """Groups that need 1,000, 2,000, 3,000 and 10,000 tokens, and 10 s beside them."""
    made = instance_of("duo").demands[0]
    return replace(made, group_output_tokens=np.array([1e3, 2e3, 3e3, 1e4]), group_waits_s=np.full(4, 10.0))


def column(demand, step_s, window_s, **composition):
    made = replace(instance_of("duo").composition, **{"oldest": None, **composition})
    return steady_columns([POINT], [demand], made, step_s, window_s)


def test_an_update_costs_the_time_to_rebuild(demand):
    (made,) = column(demand, 100.0, 100.0)
    assert made.starts == pytest.approx(0.5 * 80.0)
    assert made.concurrency == 6.0
    assert column(demand, 20.0, 20.0) == []


def test_unfinished_groups_at_the_boundaries(demand):
    # 0.01 s a token becomes 0.0125 at 80 open seconds of 100: groups take 22.5, 35, 47.5 and 135 s.
    (made,) = column(demand, 100.0, 100.0)
    assert made.unfinished == 0.25
    assert made.trained == 1.0
    # At 40 s with 20 open, 0.02 s a token: 30, 50, 70, 210 s. Boundaries at 40, 80, 120, 160, 200 s.
    (made,) = column(demand, 40.0, 40.0)
    assert made.unfinished == pytest.approx(0.75 + 4 * 0.25)


def test_groups_that_are_too_old_are_not_trained_on(demand):
    (made,) = column(demand, 100.0, 100.0, oldest=0)
    assert made.trained == 0.75
    (made,) = column(demand, 100.0, 100.0, oldest=1)
    assert made.trained == 1.0
    # A point that loses half or more of its groups is no choice.
    assert column(demand, 40.0, 40.0, oldest=0) == []


def test_a_drain_counts_if_it_ends_in_time():
    found = [Drain(kind=0, task=0, load=load, makespan_s=10.0 * load) for load in (1, 2, 3)]
    assert [(made.batch, made.starts) for made in drain_columns(found, 25.0)] == [(1, 1.0), (2, 2.0)]
