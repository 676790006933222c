"""Policies to choose from, and their penalties."""

import pytest

from rollart.domain.errors import ScenarioError
from rollart.domain.planning import Range, Rules
from rollart.sched.placement.policies import policies
from rollart.sched.presets import resolve


def test_nothing_to_choose_is_the_policy_itself():
    policy = resolve("rollart")
    assert policies(policy, Rules()) == [(policy, 1.0)]


def test_staleness_is_chosen_at_its_penalty_and_the_look_ahead_follows():
    found = policies(resolve("rollart"), Rules(staleness=Range(least=1, most=3), staleness_penalty=0.1))
    assert [factor for _, factor in found] == pytest.approx([1.0, 1.1, 1.2])
    assert [policy.parts["staleness"]["bound"] for policy, _ in found] == [1, 2, 3]
    assert [policy.parts["admission"]["lookahead"] for policy, _ in found] == [1, 2, 3]


def test_redundancy_is_chosen_beside_it():
    rules = Rules(
        staleness=Range(least=1, most=2),
        staleness_penalty=0.1,
        redundant_members=Range(least=0, most=1),
        redundancy_penalty=0.05,
    )
    found = policies(resolve("rollart"), rules)
    assert [factor for _, factor in found] == pytest.approx([1.0, 1.05, 1.1, 1.155])
    assert [policy.parts["group"]["redundant_members"] for policy, _ in found] == [0, 1, 0, 1]


def test_a_policy_without_a_bound_has_none_to_choose():
    with pytest.raises(ScenarioError, match="policy areal has no rule of staleness"):
        policies(resolve("areal"), Rules(staleness=Range(least=0, most=1)))
