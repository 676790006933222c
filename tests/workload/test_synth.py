"""Traces written from profiles."""

from typing import Any

import numpy as np
import pytest

from rollart.workload.info import trace_info
from rollart.workload.profile import Profile
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.synth import recorded, synthesize
from rollart.workload.trace_reader import decode_line
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trace_writer import encode_line


def quiet(document: dict[str, Any]) -> Profile:
    """The profile without failures, which would cut trajectories short."""
    for calls in ("reset_failures", "step_failures"):
        document["tasks"]["maze"][calls] = {"source": "test"}
    return profile_from_mapping(document, "p")


def test_a_synthetic_trace_has_the_quantiles_of_its_profile(document: dict[str, Any]) -> None:
    profile = quiet(document)
    (info,) = trace_info(synthesize(profile, groups=3000, group_size=1, seed=4)).tasks
    for name in ("turns", "prompt_tokens", "observation_tokens", "output_tokens", "env_s", "reset_s", "reward_s"):
        law, found = getattr(profile.tasks["maze"], name).law, info.quantities[name]
        assert found is not None
        assert found.mean == pytest.approx(law.mean(), rel=0.05), name
        # Tokens and turns are whole numbers, so their quantiles may be half a unit off.
        unit = 0.0 if name.endswith("_s") else 0.51
        assert found.p50 == pytest.approx(law.quantile(0.5), rel=0.06, abs=unit), name
        assert found.p90 == pytest.approx(law.quantile(0.9), rel=0.06, abs=unit), name
        assert found.p99 == pytest.approx(law.quantile(0.99), rel=0.15, abs=unit), name


def test_a_synthetic_trace_ends_at_its_first_failure(profile: Profile) -> None:
    for trajectory in synthesize(profile, groups=300, group_size=2, seed=1):
        outcomes = [turn.outcome for turn in trajectory.turns]
        assert all(outcome == "ok" for outcome in outcomes[:-1])
        failed = trajectory.reset_outcome != "ok" or outcomes[-1] != "ok"
        assert (trajectory.outcome == "failed") == failed == (trajectory.reward is None)
        assert decode_line(encode_line(trajectory)) == trajectory


def test_a_synthetic_trace_plays_like_its_profile(document: dict[str, Any]) -> None:
    profile = quiet(document)
    drawn = ProfileWorkload(profile, 4)
    played = TraceWorkload(synthesize(profile, groups=6, group_size=3, seed=4))
    for prompt, member in np.ndindex(6, 3):
        assert played.trajectory("maze", prompt, member, 0) == drawn.trajectory("maze", prompt, member, 0)


def test_everything_is_marked_as_drawn(profile: Profile) -> None:
    trajectory = recorded(ProfileWorkload(profile, 4).trajectory("maze", 1, 2, 0))
    assert set(trajectory.provenance.values()) == {"drawn"}
    assert (trajectory.group, trajectory.member) == ("maze-1", 2)


def test_tasks_can_be_chosen(profile: Profile) -> None:
    assert list(synthesize(profile, tasks=[], groups=2, group_size=2, seed=1)) == []
    assert len(list(synthesize(profile, tasks=["maze"], groups=2, group_size=2, seed=1))) == 4
