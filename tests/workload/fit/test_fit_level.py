"""Totals of trajectories, and the ends of tails."""

from typing import Any

import numpy as np
import pytest

from rollart.workload.fit.level import level_factors, levelled
from rollart.workload.fit.observed import Observed, observe
from rollart.workload.fit.tail import fit_tail
from rollart.workload.fit.tail_end import tail_end
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.synth import synthesize


def test_a_level_that_is_off_is_found(document: dict[str, Any]) -> None:
    trace = synthesize(profile_from_mapping(document, "test"), groups=2000, group_size=1, seed=3)
    observed = observe(trace)["maze"]
    task = document["tasks"]["maze"]
    assert level_factors(task, observed, None).get("output_tokens", 1.0) == pytest.approx(1.0, abs=0.06)
    task["output_tokens"]["by_turn"] = {0: 1.8, 10: 0.9}
    factors = level_factors(task, observed, None)
    assert factors["output_tokens"] == pytest.approx(1 / 0.9, rel=0.06)
    assert "observation_tokens" not in factors and "env_s" not in factors


def test_what_a_context_limit_cuts_off_is_made_up_for(document: dict[str, Any]) -> None:
    limit = 8_000
    profile = profile_from_mapping(document | {"context_limit_tokens": limit}, "test")
    observed = observe(synthesize(profile, groups=1000, group_size=1, seed=3))["maze"]
    task = document["tasks"]["maze"]
    task["output_tokens"]["by_turn"] = {0: 1.8, 10: 0.9}
    factors = level_factors(task, observed, limit)
    mended = {"context_limit_tokens": limit, "tasks": {"maze": levelled(task, factors)}}
    found = observe(synthesize(profile_from_mapping(document | mended, "x"), groups=1000, group_size=1, seed=5))["maze"]
    assert _own(found, "output_tokens") == pytest.approx(_own(observed, "output_tokens"), rel=0.04)


def _own(observed: Observed, figure: str) -> float:
    return float(observed.draws(figure).values.sum()) / observed.trajectories


@pytest.mark.parametrize("alpha", [0.6, 1.2, 3.0])
def test_a_tail_ends_where_its_mean_is_that_of_the_values(alpha: float) -> None:
    values = np.sort((1.0 - np.random.default_rng(4).uniform(size=4000)) ** (-1.0 / alpha))
    tail = fit_tail(values, np.ones(4000), np.arange(4000))
    assert tail is not None
    end = tail_end(tail, values, np.ones(4000))
    rarest = tail.threshold * (10.0 * tail.exceedances) ** (1.0 / tail.parameter)
    assert values[-1] <= end <= max(values[-1], rarest) * 1.01


def test_a_light_tail_may_go_beyond_what_was_seen() -> None:
    values = np.minimum(np.sort((1.0 - (np.arange(4000) + 0.5) / 4000) ** -0.5), 50.0)
    tail = fit_tail(values, np.ones(4000), np.arange(4000))
    assert tail is not None and tail_end(tail, values, np.ones(4000)) > 50.0
