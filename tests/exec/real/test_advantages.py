"""Advantages by groups."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.execution import AdvantageScale, Learning
from rollart.exec.real.trainer.advantages import with_advantages
from rollart.exec.real.trainer.rows import Row


def row(group, reward, task="t"):
    return Row(
        task=task, group=group, tokens=[1, 2], made=[False, True], logprobs=[0.0, -1.0], versions=[-1, 0], reward=reward
    )


def advantages(rows, **learning):
    return [each.advantage for each in with_advantages(rows, Learning(**learning))]


def test_a_group_is_its_own_baseline():
    rows = [row(0, 0.0), row(0, 1.0), row(1, 5.0), row(1, 7.0)]
    assert advantages(rows) == pytest.approx([-1.0, 1.0, -1.0, 1.0])


def test_almost_equal_rewards_are_not_blown_up():
    rows = [row(0, 0.50), row(0, 0.52)]
    assert advantages(rows, deviation_floor=0.1) == pytest.approx([-0.1, 0.1])


def test_equal_rewards_have_no_advantage():
    assert advantages([row(0, 1.0)] * 3) == [0.0] * 3
    assert advantages([row(0, 0.3)]) == [0.0]


def test_a_task_may_share_one_deviation():
    rows = [row(0, 0.0), row(0, 2.0), row(1, 1.0), row(1, 1.0)]
    assert advantages(rows, advantage_scale=AdvantageScale.TASK) == pytest.approx([-(2**0.5), 2**0.5, 0.0, 0.0])


def test_differences_may_stay_as_they_are():
    assert advantages([row(0, 0.0), row(0, 4.0)], advantage_scale=AdvantageScale.NONE) == [-2.0, 2.0]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-5, 5)), min_size=1, max_size=12))
def test_advantages_of_a_group_add_up_to_nothing(drawn):
    rows = with_advantages([row(group, reward) for group, reward in drawn], Learning())
    for group in {row.group for row in rows}:
        assert sum(row.advantage for row in rows if row.group == group) == pytest.approx(0.0, abs=1e-6)
