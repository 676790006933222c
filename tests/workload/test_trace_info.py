"""Summaries of traces."""

import json

import numpy as np
import pytest

from rollart.workload.distribution import EXACT_VALUES, Distribution
from rollart.workload.info import trace_info
from rollart.workload.task_info import TaskInfo
from rollart.workload.trace import TraceTrajectory, TraceTurn


def trajectory(group: str, member: int, reward: float | None, **kwargs: object) -> TraceTrajectory:
    turns = (
        TraceTurn(output_tokens=20, env_s=0.5),
        TraceTurn(prompt_tokens=30, output_tokens=40, env_s=1.5),
    )
    keys = {"turns": turns, "reset_s": 2.0, "task": "maze"} | kwargs
    return TraceTrajectory(group=group, member=member, prompt_tokens=100, reward=reward, **keys)


def info(*trajectories: TraceTrajectory) -> TaskInfo:
    (found,) = trace_info(trajectories).tasks
    return found


def test_counts_and_rewards() -> None:
    found = info(
        trajectory("a", 0, 1.0),
        trajectory("a", 1, 0.0),
        trajectory("b", 0, 1.0),
        trajectory("b", 1, 1.0, outcome="truncated"),
        trajectory("c", 0, None, outcome="failed", reset_outcome="timeout", turns=()),
    )
    assert (found.trajectories, found.groups, found.groups_without_signal) == (5, 3, 1)
    assert (found.reward_mean, found.failed_share, found.truncated_share) == (0.75, 0.2, 0.2)
    env_s = found.quantities["env_s"]
    assert env_s is not None and (env_s.count, env_s.mean, env_s.max) == (8, 1.0, 1.5)
    assert found.quantities["reward_s"] is None


def test_token_work_of_a_perfect_cache() -> None:
    found = info(trajectory("a", 0, 1.0), trajectory("a", 1, 1.0))
    assert found.context_tokens_sent == 2 * (100 + 150)
    # First member: prompt and observation. Second: the last token of the shared prompt, and its observation.
    assert found.prefill_tokens == (100 + 30) + (1 + 30)
    assert found.decode_tokens == 2 * 60
    assert found.prefill_per_decode == pytest.approx(161 / 120)
    assert found.ideal_hit_rate == pytest.approx(1 - 161 / 500)


def test_a_cut_context_is_prefilled_again() -> None:
    turns = (TraceTurn(output_tokens=20), TraceTurn(prompt_tokens=30, kept_tokens=50, output_tokens=1))
    assert info(trajectory("a", 0, None, turns=turns)).prefill_tokens == 100 + 30
    assert info(trajectory("a", 0, None, turns=turns)).context_tokens_sent == 100 + 80


def test_an_own_part_of_the_prompt_is_not_shared() -> None:
    turns = (TraceTurn(prompt_tokens=9, output_tokens=1),)
    found = info(trajectory("a", 0, None, turns=turns), trajectory("a", 1, None, turns=turns))
    assert found.prefill_tokens == 109 + 9


def test_tasks_stay_apart_in_the_order_of_the_file() -> None:
    found = trace_info([trajectory("a", 0, 1.0, task="z"), trajectory("a", 0, 0.0, task="b")])
    assert [(task.task, task.reward_mean) for task in found.tasks] == [("z", 1.0), ("b", 0.0)]


def test_the_forms_for_json_and_tables() -> None:
    found = trace_info([trajectory("a", 0, 1.0, provenance={"env_s": "drawn"})])
    document = json.loads(json.dumps(found.as_dict()))
    assert document["maze"]["quantities"]["output_tokens"]["max"] == 40
    assert document["maze"]["provenance"] == {"env_s": ["drawn"]}
    assert document["maze"]["ideal_hit_rate"] == pytest.approx(1 - 130 / 250)
    assert ("maze", "turns", 1, 2.0, 2.0, 2.0, 2.0, 2.0) in found.as_rows()
    assert "reward_s" not in {row[1] for row in found.as_rows()}


def test_few_values_have_exact_quantiles() -> None:
    found = Distribution()
    for value in range(101):
        found.add(float(value))
    summary = found.summary()
    assert summary is not None
    assert (summary.p50, summary.p90, summary.p99, summary.max, summary.mean) == (50, 90, 99, 100, 50)


def test_many_values_have_quantiles_within_half_a_percent() -> None:
    values = np.exp(np.random.default_rng(1).standard_normal(EXACT_VALUES + 5000))
    found = Distribution()
    for value in values.tolist():
        found.add(value)
    summary = found.summary()
    assert summary is not None
    expected = np.quantile(values, [0.5, 0.9, 0.99])
    assert [summary.p50, summary.p90, summary.p99] == pytest.approx(expected, rel=0.0051)
    assert summary.mean == pytest.approx(values.mean()) and summary.max == values.max()


def test_nothing_seen_has_no_summary() -> None:
    assert Distribution().summary() is None


def test_negative_numbers_have_their_quantiles_too() -> None:
    values = np.random.default_rng(3).standard_normal(EXACT_VALUES + 10)
    found = Distribution()
    found.extend(values.tolist())
    summary = found.summary()
    assert summary is not None
    expected = np.quantile(values, [0.5, 0.9, 0.99])
    assert [summary.p50, summary.p90, summary.p99] == pytest.approx(expected, rel=0.0051, abs=0.001)
    low = Distribution()
    low.extend([-3.0, -2.0])
    summary = low.summary()
    assert summary is not None and (summary.max, summary.p50) == (-2.0, -2.5)


def test_survival_is_the_share_at_least_as_large() -> None:
    found = Distribution()
    found.extend([1.0, 2.0, 2.0, 5.0])
    assert found.survival() == ([1.0, 2.0, 5.0], [1.0, 0.75, 0.25])


def test_survival_of_many_values() -> None:
    found = Distribution()
    found.extend(np.arange(1.0, EXACT_VALUES + 1001.0).tolist())
    values, shares = found.survival()
    assert len(values) < 2000 and shares[0] == 1.0 and shares == sorted(shares, reverse=True)
    half = next(value for value, share in zip(values, shares, strict=True) if share <= 0.5)
    assert half == pytest.approx((EXACT_VALUES + 1000) / 2, rel=0.015)


def test_a_task_is_heavy_by_its_token_work() -> None:
    decode = info(trajectory("a", 0, 1.0))
    long_prompt = TraceTrajectory(task="m", group="a", prompt_tokens=5000, turns=(TraceTurn(output_tokens=20),))
    nothing = trajectory("a", 0, None, outcome="failed", reset_outcome="failed", turns=())
    assert [one.heavy for one in (decode, info(long_prompt), info(nothing))] == ["decode", "prefill", "none"]


def test_rewards_have_quantiles() -> None:
    found = info(*(trajectory("a", member, reward) for member, reward in enumerate((-1.0, 0.0, 1.0))))
    reward = found.quantities["reward"]
    assert reward is not None and (reward.count, reward.mean, reward.p50, reward.max) == (3, 0.0, 0.0, 1.0)
