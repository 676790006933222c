"""Filters, merges, splits and samples of traces."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.workload.group_choice import group_place, in_share
from rollart.workload.selection import Filter, filtered, longest_tokens, merged, sampled
from rollart.workload.trace import TraceTrajectory, TraceTurn


def one(group: str, member: int, turns: int = 1, **keys: Any) -> TraceTrajectory:
    played = tuple(TraceTurn(prompt_tokens=10 * (k > 0), output_tokens=5) for k in range(turns))
    return TraceTrajectory(
        **({"task": "a", "group": group, "member": member, "prompt_tokens": 100, "turns": played} | keys)
    )


TRACE = [
    one("x", 0, turns=1, reward=1.0),
    one("x", 1, turns=4, reward=0.0),
    one("y", 0, turns=2, task="b", outcome="truncated"),
    one("y", 1, turns=0, task="b", outcome="failed", reset_outcome="timeout"),
    one("z", 0, turns=6, reward=0.5),
]
MANY = [one(f"g{group}", member, task=task) for task in "ab" for group in range(200) for member in range(3)]


def names(trace: Any) -> list[str]:
    return [f"{each.group}{each.member}" for each in trace]


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        ({}, ["x0", "x1", "y0", "y1", "z0"]),
        ({"tasks": ["b"]}, ["y0", "y1"]),
        ({"outcomes": ["failed", "truncated"]}, ["y0", "y1"]),
        ({"least_turns": 2, "most_turns": 4}, ["x1", "y0"]),
        ({"least_tokens": 106, "most_tokens": 150}, ["x1", "y0"]),
        ({"least_reward": 0.5}, ["x0", "z0"]),
        ({"most_reward": 0.5, "tasks": ["a"]}, ["x1", "z0"]),
    ],
)
def test_every_bound_is_met(bounds: dict[str, Any], kept: list[str]) -> None:
    assert names(filtered(lambda: TRACE, Filter(**bounds))) == kept


def test_the_longest_context_includes_its_output() -> None:
    assert [longest_tokens(each) for each in TRACE] == [105, 150, 120, 0, 180]


def test_a_group_stays_whole_or_goes() -> None:
    assert names(filtered(lambda: TRACE, Filter(most_turns=2), whole_groups=True)) == ["y0", "y1"]


def test_merged_traces_keep_their_groups_apart() -> None:
    found = list(merged([("one", [TRACE[0]]), ("two", [TRACE[0]])], same_groups=False))
    assert [each.group for each in found] == ["one/x", "two/x"]


def test_members_of_the_same_group_get_new_numbers_where_they_clash() -> None:
    found = list(merged([("one", TRACE[:2]), ("two", TRACE[:3])], same_groups=True))
    assert names(found) == ["x0", "x1", "x2", "x3", "y0"]


@settings(max_examples=20)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 2**63 - 1))
def test_a_smaller_share_is_a_part_of_a_larger_one(a: float, b: float, seed: int) -> None:
    small, large = sorted((a, b))
    assert all(in_share(each, large, seed) for each in MANY[:60] if in_share(each, small, seed))


def test_groups_stay_together_and_halves_are_about_halves() -> None:
    first = Counter((each.task, each.group) for each in MANY if in_share(each, 0.5, 7))
    assert set(first.values()) == {3}
    assert len(first) == pytest.approx(200, abs=40)
    assert 0.0 <= min(group_place(each, 7) for each in MANY) < max(group_place(each, 7) for each in MANY) < 1.0


def test_a_sample_has_the_groups_and_members_asked_for() -> None:
    found = list(sampled(lambda: MANY, groups=7, members=2, seed=1))
    assert Counter(each.task for each in found) == {"a": 14, "b": 14}
    assert set(Counter((each.task, each.group) for each in found).values()) == {2}
    assert [each for each in MANY if each in found] == found
    smaller = list(sampled(lambda: MANY, groups=3, members=2, seed=1))
    assert len(smaller) == 12 and all(each in found for each in smaller)
    assert names(sampled(lambda: MANY, groups=7, members=2, seed=2)) != names(found)


def test_a_sample_without_bounds_is_everything() -> None:
    assert list(sampled(lambda: MANY, groups=None, members=None, seed=1)) == MANY
