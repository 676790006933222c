from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from rollart.domain.errors import ScenarioError
from rollart.sched import PRESETS
from rollart.sched.parts import SLOTS, build, register
from rollart.sched.parts.recovery import Backoff
from rollart.sched.parts.staleness import AtStart, EveryTurn


def parts(**changed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parts of sync+ with some slots replaced."""
    return {**PRESETS["sync+"], **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"router": {"kind": "fastest"}},
            "policy.router.kind: 'fastest' is unknown; known: least_loaded, round_robin",
        ),
        (
            {"admission": {"kind": "quota", "lookahaed": 1}},
            "policy.admission.lookahaed: unknown for 'quota'; did you mean 'lookahead'?",
        ),
        (
            {"staleness": {"kind": "at_start", "bound": 1}},
            "policy.staleness.bound: unknown for 'at_start'; known: none",
        ),
        (
            {"admission": {"kind": "quota", "lookahead": "two"}},
            "policy.admission.lookahead: 'two' is not a int",
        ),
        (
            {"admission": {"kind": "quota", "lookahead": True}},
            "policy.admission.lookahead: True is not a int",
        ),
        (
            {"sync": {"kind": "weight_sync", "prefetch": 1}},
            "policy.sync.prefetch: 1 is not a bool",
        ),
        (
            {"admission": {"kind": "quota", "lookahead": -1}},
            "policy.admission: lookahead is -1; must be from 0 to 1000",
        ),
        (
            {"admission": {"kind": "quota", "base": "trained"}},
            "policy.admission: base is 'trained'; must be 'installed' or 'taken'",
        ),
        (
            {"admission": {"kind": "quota", "redundant_groups": 11}},
            "policy.admission: redundant_groups is 11; must be from 0 to 10",
        ),
        (
            {"group": {"kind": "first_of", "redundant_members": 1001}},
            "policy.group: redundant_members is 1001; must be from 0 to 1000",
        ),
        (
            {"group": {"kind": "first_of", "surplus": "burn"}},
            "policy.group: surplus is 'burn'; must be 'stop' or 'keep'",
        ),
        (
            {"staleness": {"kind": "every_turn", "bound": -1}},
            "policy.staleness: bound is -1; must be from 0 to 1000",
        ),
        (
            {"sync": {"kind": "weight_sync", "order": "never"}},
            "policy.sync: order is 'never'; must be 'update_first' or 'batch_first'",
        ),
        (
            {"sync": {"kind": "weight_sync", "prefetch": True}},
            "policy.sync: prefetch needs transport 'store': a broadcast cannot wait on the engines' hosts",
        ),
        (
            {"sync": {"kind": "weight_sync", "in_flight": "interrupt", "suspend": False}},
            "policy.sync: in_flight 'interrupt' needs suspend: true",
        ),
        (
            {"recovery": {"kind": "backoff", "max_attempts": 0}},
            "policy.recovery: max_attempts is 0; must be from 1 to 1000",
        ),
        (
            {"recovery": {"kind": "backoff", "reset_timeout_s": float("nan")}},
            "policy.recovery: reset_timeout_s is nan; must be above 0",
        ),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        build(parts(**changed))
    assert str(caught.value) == message


def test_a_missing_slot_is_named() -> None:
    some = parts()
    del some["router"], some["group"]
    with pytest.raises(ScenarioError, match="policy: no rule for group, router"):
        build(some)


def test_a_part_without_a_kind_is_the_first_of_its_slot() -> None:
    assert build(parts(staleness={"bound": 3})).staleness == EveryTurn(bound=3)


def test_a_whole_number_passes_where_a_fraction_is_meant() -> None:
    assert build(parts(recovery={"backoff_s": 2})).recovery == Backoff(backoff_s=2)


@pytest.fixture
def hour_rule() -> Iterator[type[Any]]:
    """A rule that is registered for one test."""

    @register("staleness", "weekly")
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Weekly:
        bound: int = 7

        def oldest(self, installed: int) -> int | None:
            return installed - installed % self.bound

    yield Weekly
    del SLOTS["staleness"]["weekly"]


def test_a_registered_rule_is_built_by_its_name(hour_rule: type[Any]) -> None:
    rule = build(parts(staleness={"kind": "weekly", "bound": 5})).staleness
    assert isinstance(rule, hour_rule)
    assert rule.oldest(13) == 10


# The small rules themselves


def test_backoff_doubles_to_its_ceiling_and_then_gives_up() -> None:
    rule = Backoff(backoff_s=1.0, factor=2.0, max_backoff_s=5.0, max_attempts=6)
    assert [rule.retry_after_s(failures) for failures in range(1, 7)] == [1.0, 2.0, 4.0, 5.0, 5.0, None]
    assert Backoff(max_attempts=1000, factor=100).retry_after_s(900) == 60.0


def test_an_engine_is_restarted_as_often_as_allowed() -> None:
    rule = Backoff(max_engine_restarts=2)
    assert [rule.restart_engine(losses) for losses in (1, 2, 3)] == [True, True, False]


def test_staleness_rules_say_what_is_too_old() -> None:
    assert EveryTurn(bound=2).oldest(5) == 3
    assert AtStart().oldest(5) is None
    assert AtStart().bound is None
