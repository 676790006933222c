"""Profiles turned by knobs."""

from typing import Any

import pytest

from rollart.workload.knobs import Knobs
from rollart.workload.profile import Profile
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.synth import synthesize


def test_nothing_turned_draws_the_same(profile: Profile) -> None:
    plain = list(synthesize(profile, groups=4, group_size=2, seed=1))
    assert list(synthesize(profile, groups=4, group_size=2, seed=1, knobs=Knobs(), groups_per_step=2)) == plain


def test_a_scaled_tail_leaves_the_body_and_stretches_what_is_above(profile: Profile) -> None:
    law = profile.tasks["maze"].output_tokens.law
    turned = Knobs(tail_scales={"output_tokens": 3.0}).turned(profile).tasks["maze"].output_tokens.law
    knee = law.quantile(0.9)
    for p in (0.1, 0.5, 0.9):
        assert turned.quantile(p) == pytest.approx(law.quantile(p))
    for p in (0.95, 0.99):
        assert turned.quantile(p) == pytest.approx(knee + 3.0 * (law.quantile(p) - knee), rel=0.01)


def test_every_law_of_a_figure_is_turned(document: dict[str, Any]) -> None:
    document["tasks"]["maze"]["env_s"] = {
        "quantiles": {0.5: 1.0},
        "from_turns": {4: {"quantiles": {0.5: 3.0}}},
        "guess": True,
    }
    env_s = Knobs(drifts={"env_s": 1.0}).turned(profile_from_mapping(document, "p"), 2).tasks["maze"].env_s
    assert (env_s.law_at(3).at(0.0), env_s.law_at(4).at(0.0)) == (pytest.approx(4.0), pytest.approx(12.0))


def test_drift_compounds_from_step_to_step(document: dict[str, Any]) -> None:
    for name in ("reset_failures", "step_failures"):
        document["tasks"]["maze"][name] = {"source": "test"}
    document["tasks"]["maze"]["output_tokens"] = {"quantiles": {0.5: 1000}, "source": "test"}
    profile = profile_from_mapping(document, "p")
    drifting = Knobs(drifts={"output_tokens": 0.1})
    trace = list(synthesize(profile, groups=6, group_size=1, seed=1, knobs=drifting, groups_per_step=2))
    assert [one.turns[0].output_tokens for one in trace] == [1000, 1000, 1100, 1100, 1210, 1210]
    still = list(synthesize(profile, groups=6, group_size=1, seed=1))
    assert [len(one.turns) for one in trace] == [len(one.turns) for one in still]


def test_figures_stay_in_their_bounds(profile: Profile) -> None:
    shrunk = Knobs(drifts={"output_tokens": -0.9, "turns": -0.9}).turned(profile, 5).tasks["maze"]
    assert (shrunk.output_tokens.law.at(-9), shrunk.turns.law.at(9)) == (1.0, 1.0)
    grown = Knobs(drifts={"turns": 10.0}).turned(profile, 9).tasks["maze"]
    assert grown.turns.law.at(9) == pytest.approx(10_000.0)


def test_a_failure_rate_replaces_that_of_the_profile(profile: Profile) -> None:
    turned = Knobs(failure_rates={"reset": 0.5, "step": 0.0}).turned(profile).tasks["maze"]
    assert turned.reset_failures.failed == 0.5
    assert turned.reset_failures.timeout == pytest.approx(0.01 / 0.98 * 0.5)
    assert turned.step_failures.failed == 0.0
    trace = list(synthesize(profile, groups=400, group_size=1, seed=2, knobs=Knobs(failure_rates={"reset": 0.5})))
    assert sum(one.reset_outcome == "failed" for one in trace) == pytest.approx(200, abs=40)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"tail_scales": {"foo": 1.0}}, "scale-tail names 'foo'; it must be one of turns"),
        ({"tail_scales": {"turns": 0.0}}, "scale-tail turns is 0; must be > 0"),
        ({"drifts": {"turns": -1.0}}, "drift turns is -1 a step; must be > -1"),
        ({"failure_rates": {"step": 1.5}}, "failure-rate step is 1.5; must be a share"),
        ({"drifts": {"turns": float("nan")}}, "drift turns is nan"),
    ],
)
def test_wrong_knobs_are_named(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Knobs(**knobs)
