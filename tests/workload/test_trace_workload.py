"""Recorded trajectories, played again."""

from typing import Any

import msgspec
import pytest

from rollart.domain.errors import TraceError
from rollart.workload.profile import Profile
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.times import fill_times
from rollart.workload.trace import TraceTrajectory, TraceTurn
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trajectory import StepOutcome


def recorded(group: str, member: int, *, timed: bool = True, failed: bool = False) -> TraceTrajectory:
    env_s = 0.5 if timed else None
    return TraceTrajectory(
        task="maze",
        group=group,
        member=member,
        prompt_tokens=100,
        reset_s=1.0 if timed else None,
        turns=(
            TraceTurn(output_tokens=10 * (member + 1), env_s=env_s),
            TraceTurn(prompt_tokens=7, output_tokens=0, env_s=env_s, outcome="timeout" if failed else "ok"),
        ),
        reward_s=0.25 if timed else None,
        reward=1.0,
        outcome="failed" if failed else "ok",
    )


def test_prompts_and_members_wrap_around() -> None:
    workload = TraceWorkload([recorded("b", 1), recorded("b", 0), recorded("a", 5)])
    outputs = [[workload.trajectory("maze", p, m, 0).output_tokens[0] for m in range(3)] for p in range(3)]
    assert outputs == [[10, 20, 10], [60, 60, 60], [10, 20, 10]]
    assert (workload.tasks, workload.groups("maze")) == (("maze",), 2)


def test_a_record_is_played_as_it_is() -> None:
    spec = TraceWorkload([recorded("a", 0)]).trajectory("maze", 4, 2, 1)
    assert (spec.prompt, spec.member, spec.attempt) == (4, 2, 1)
    assert (spec.prompt_tokens, spec.new_tokens, spec.kept_tokens) == (100, [0, 7], None)
    assert (spec.reset_s, spec.env_s, spec.reward_s, spec.reward) == (1.0, [0.5, 0.5], 0.25, 1.0)
    assert (spec.reset_outcome, spec.env_outcome, spec.truncated) == (StepOutcome.OK, None, False)
    assert list(spec.contexts()) == [100, 117]


def test_an_output_of_no_token_counts_as_one() -> None:
    assert TraceWorkload([recorded("a", 0)]).trajectory("maze", 0, 0, 0).output_tokens == [10, 1]


def test_a_retry_plays_a_member_that_did_not_fail() -> None:
    workload = TraceWorkload([recorded("a", 0, failed=True), recorded("a", 1), recorded("a", 2)])
    first = workload.trajectory("maze", 0, 0, 0)
    assert first.env_outcome == [StepOutcome.OK, StepOutcome.TIMEOUT]
    retries = [workload.trajectory("maze", 0, 0, attempt) for attempt in (1, 2)]
    assert [retry.output_tokens[0] for retry in retries] == [30, 20]
    assert all(retry.env_outcome is None for retry in retries)


def test_missing_times_need_a_profile(profile: Profile) -> None:
    with pytest.raises(TraceError, match="group 'a', member 0: reset_s was not recorded; name a profile"):
        TraceWorkload([recorded("a", 0, timed=False)])
    workload = TraceWorkload([recorded("a", 0, timed=False)], times=profile, seed=3)
    assert workload.drawn_fields == {"maze": frozenset({"reset_s", "env_s", "reward_s"})}
    spec = workload.trajectory("maze", 0, 0, 0)
    assert (spec.reset_s, spec.reward_s) == pytest.approx((2.0, 0.5))
    assert all(env_s > 0 for env_s in spec.env_s)
    assert workload.trajectory("maze", 0, 0, 0) == spec
    assert workload.trajectory("maze", 1, 0, 0).env_s != spec.env_s


def test_recorded_times_are_not_overwritten(profile: Profile) -> None:
    workload = TraceWorkload([recorded("a", 0)], times=profile)
    assert workload.trajectory("maze", 0, 0, 0).env_s == [0.5, 0.5]
    assert workload.drawn_fields == {"maze": frozenset()}


def test_filled_times_are_marked_as_drawn(profile: Profile) -> None:
    missing, complete = fill_times([recorded("a", 0, timed=False), recorded("a", 1)], profile, 3)
    assert missing.provenance == {"reset_s": "drawn", "env_s": "drawn", "reward_s": "drawn"}
    assert missing.reset_s == pytest.approx(2.0)
    assert all(turn.env_s is not None for turn in missing.turns)
    assert complete == recorded("a", 1)


def test_times_of_a_task_that_no_profile_has(document: dict[str, Any]) -> None:
    document["tasks"]["other"] = document["tasks"]["maze"]
    two = profile_from_mapping(document, "p")
    chess = msgspec.structs.replace(recorded("a", 0, timed=False), task="chess")
    with pytest.raises(TraceError, match=r"task 'chess' is not in profile 'small'.*; it has maze, other"):
        list(fill_times([chess], two, 0))


def test_an_empty_trace_and_an_unknown_task_are_named() -> None:
    with pytest.raises(TraceError, match="the trace has no trajectory"):
        TraceWorkload([])
    with pytest.raises(TraceError, match="task 'chess' is not in the trace; it has maze"):
        TraceWorkload([recorded("a", 0)]).trajectory("chess", 0, 0, 0)
