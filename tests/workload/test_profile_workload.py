"""Trajectories drawn from a profile."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollart.domain.errors import TraceError
from rollart.workload.profile import Profile
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.trajectory import MixedWorkload, StepOutcome, TrajectorySpec


def draw(profile: Profile, prompts: int, members: int, **kwargs: Any) -> list[TrajectorySpec]:
    workload = ProfileWorkload(profile, 11, **kwargs)
    return [workload.trajectory("maze", p, m, 0) for p in range(prompts) for m in range(members)]


keys = st.tuples(st.integers(0, 1000), st.integers(0, 15), st.integers(0, 5))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(keys, min_size=1, max_size=8), st.randoms())
def test_the_same_key_gives_the_same_trajectory_in_any_order(profile: Profile, order, shuffler) -> None:
    workload = ProfileWorkload(profile, 5)
    first = {key: workload.trajectory("maze", *key) for key in order}
    shuffler.shuffle(order)
    other = ProfileWorkload(profile, 5)
    assert {key: other.trajectory("maze", *key) for key in order} == first


def test_seed_member_and_attempt_change_the_draw(profile: Profile) -> None:
    base = ProfileWorkload(profile, 5).trajectory("maze", 1, 1, 0)
    assert ProfileWorkload(profile, 6).trajectory("maze", 1, 1, 0).env_s != base.env_s
    assert ProfileWorkload(profile, 5).trajectory("maze", 1, 2, 0).env_s != base.env_s
    assert ProfileWorkload(profile, 5).trajectory("maze", 1, 1, 1).env_s != base.env_s


def test_a_group_and_its_retries_share_the_prompt(profile: Profile) -> None:
    workload = ProfileWorkload(profile, 5)
    lengths = {workload.trajectory("maze", 3, m, a).prompt_tokens for m in range(4) for a in range(3)}
    assert len(lengths) == 1


def test_lists_have_one_plain_entry_a_turn(profile: Profile) -> None:
    for spec in draw(profile, 30, 2):
        assert len(spec.new_tokens) == len(spec.output_tokens) == len(spec.env_s) == spec.turns
        assert spec.new_tokens[0] == 0
        assert all(type(tokens) is int and tokens >= 1 for tokens in spec.output_tokens)
        assert all(type(env_s) is float and env_s > 0 for env_s in spec.env_s)


def test_marginals_are_those_of_the_profile(profile: Profile) -> None:
    specs = draw(profile, 2000, 1)
    turns = np.array([spec.turns for spec in specs])
    output = np.concatenate([spec.output_tokens for spec in specs])
    assert np.median(turns) == pytest.approx(6, abs=0.5)
    assert np.quantile(output, [0.1, 0.5]) == pytest.approx([20, 60], rel=0.08)


def test_a_prompt_effect_makes_its_group_alike(document: dict[str, Any]) -> None:
    document["tasks"]["maze"]["turns"]["prompt_share"] = 0.8
    specs = draw(profile_from_mapping(document, "p"), 400, 4)
    turns = np.log([spec.turns for spec in specs]).reshape(400, 4)
    between, within = turns.mean(axis=1).var(), turns.var(axis=1).mean()
    assert between > 2 * within


def test_success_has_its_mean_and_harder_prompts_take_longer(profile: Profile) -> None:
    specs = draw(profile, 1500, 4)
    rewards = np.array([spec.reward for spec in specs])
    turns = np.array([spec.turns for spec in specs])
    assert rewards.mean() == pytest.approx(0.4, abs=0.03)
    assert turns[rewards == 1].mean() < turns[rewards == 0].mean()


def test_spread_makes_groups_without_signal(document: dict[str, Any]) -> None:
    def without_signal(spread: float) -> float:
        document["tasks"]["maze"]["success"]["spread"] = spread
        specs = draw(profile_from_mapping(document, "p"), 300, 8)
        solved = np.array([spec.reward for spec in specs]).reshape(300, 8).sum(axis=1)
        return float(np.mean((solved == 0) | (solved == 8)))

    assert without_signal(0.0) == pytest.approx(0.4**8 + 0.6**8, abs=0.03)
    assert without_signal(3.0) > 0.4


def test_failures_have_their_rates_and_times(profile: Profile) -> None:
    specs = draw(profile, 3000, 1)
    resets = [spec.reset_outcome for spec in specs]
    assert resets.count(StepOutcome.FAILED) / 3000 == pytest.approx(0.02, abs=0.008)
    assert {s.reset_s for s in specs if s.reset_outcome is StepOutcome.TIMEOUT} == {30.0}
    fates = [
        (fate, env_s)
        for spec in specs
        for fate, env_s in zip(spec.env_outcome or [StepOutcome.OK] * spec.turns, spec.env_s, strict=True)
    ]
    assert sum(fate is StepOutcome.FAILED for fate, _ in fates) / len(fates) == pytest.approx(0.01, abs=0.002)
    assert {env_s for fate, env_s in fates if fate is StepOutcome.TIMEOUT} == {20.0}


def test_the_context_limit_truncates_and_forbids_success(profile: Profile) -> None:
    specs = draw(profile, 200, 2, context_limit_tokens=400)
    cut = [spec for spec in specs if spec.truncated]
    assert cut and all(spec.reward == 0.0 for spec in cut)
    assert max(list(spec.contexts())[-1] + spec.output_tokens[-1] for spec in specs) <= 400


def test_a_context_limit_has_room_for_an_output(profile: Profile) -> None:
    with pytest.raises(TraceError, match="context_limit_tokens is 1; must be >= 2"):
        ProfileWorkload(profile, 0, context_limit_tokens=1)
    assert all(spec.prompt_tokens == 1 for spec in draw(profile, 5, 1, context_limit_tokens=2))


def test_stripped_reasoning_is_kept_out_of_the_next_context(document: dict[str, Any]) -> None:
    document["tasks"]["maze"]["strip_reasoning"] = {"share": 1.0, "source": "test"}
    spec = next(s for s in draw(profile_from_mapping(document, "p"), 50, 1) if s.turns > 2)
    assert list(spec.contexts())[-1] == spec.prompt_tokens + sum(spec.new_tokens)


def test_an_unknown_task_is_named(profile: Profile) -> None:
    with pytest.raises(TraceError, match="task 'chess' is not in profile 'small'; it has maze"):
        ProfileWorkload(profile, 0).trajectory("chess", 0, 0, 0)


def test_a_mix_asks_the_workload_of_the_task(profile: Profile) -> None:
    mixed = MixedWorkload({"maze": ProfileWorkload(profile, 5)})
    assert mixed.trajectory("maze", 1, 2, 0) == ProfileWorkload(profile, 5).trajectory("maze", 1, 2, 0)
    with pytest.raises(TraceError, match="task 'chess' is not in this mix of workloads; it has maze"):
        mixed.trajectory("chess", 0, 0, 0)
