"""Profiles fitted to traces that were drawn from a known one, and to real ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rollart.cli.main import app
from rollart.domain.errors import TraceError
from rollart.workload.fit.document import fit_profile
from rollart.workload.info import trace_info
from rollart.workload.profile_file import load_document, load_profile, profile_from_mapping
from rollart.workload.profile_writer import write_profile
from rollart.workload.synth import synthesize
from rollart.workload.trace import TraceTrajectory, TraceTurn
from rollart.workload.trace_reader import TraceReader


def drawn(document: dict[str, Any], groups: int, seed: int = 3) -> list[TraceTrajectory]:
    return list(synthesize(profile_from_mapping(document, "test"), groups=groups, group_size=4, seed=seed))


def bare(member: int, **keys: Any) -> TraceTrajectory:
    own = {"task": "a", "group": "g", "prompt_tokens": 10, "turns": (TraceTurn(output_tokens=5, env_s=1.0),)}
    return TraceTrajectory(**(own | {"reset_s": 1.0, "reward_s": 2.0, "reward": 1.0, "member": member} | keys))


@pytest.fixture
def fitted(document: dict[str, Any]) -> dict[str, Any]:
    found = fit_profile(drawn(document, 700), name="again", source="a draw")
    return found["tasks"]["maze"]


def test_correlations_are_found_again(fitted: dict[str, Any]) -> None:
    output, turns = fitted["output_tokens"], fitted["turns"]
    assert turns["prompt_share"] == pytest.approx(0.5, abs=0.06)
    assert output["prompt_share"] == pytest.approx(0.2, abs=0.06)
    assert output["member_share"] == pytest.approx(0.3, abs=0.06)
    assert output["turns_correlation"] == pytest.approx(0.6, abs=0.12)
    assert fitted["env_s"]["member_share"] == pytest.approx(0.4, abs=0.05)
    assert "turns_correlation" not in fitted["observation_tokens"]
    assert "by_turn" not in fitted["observation_tokens"]


def test_the_change_along_a_trajectory_is_found_again(fitted: dict[str, Any]) -> None:
    factors = fitted["output_tokens"]["by_turn"]
    assert factors[0] / factors[max(factors)] == pytest.approx(2.0, rel=0.15)


def test_a_fitted_profile_draws_what_was_drawn(document: dict[str, Any]) -> None:
    original = drawn(document, 500)
    again = profile_from_mapping(fit_profile(original, name="again", source="a draw"), "again")
    (old,) = trace_info(original).tasks
    (new,) = trace_info(synthesize(again, groups=500, group_size=4, seed=8)).tasks
    for name in ("turns", "prompt_tokens", "output_tokens", "observation_tokens", "env_s", "response_tokens"):
        before, after = old.quantities[name], new.quantities[name]
        assert before is not None and after is not None
        assert after.mean == pytest.approx(before.mean, rel=0.06), name
        assert after.p90 == pytest.approx(before.p90, rel=0.08, abs=1.0), name
        assert after.p99 == pytest.approx(before.p99, rel=0.12, abs=1.0), name
    assert new.reward_mean == pytest.approx(old.reward_mean, abs=0.05)
    assert new.groups_without_signal == pytest.approx(old.groups_without_signal, abs=50)


def test_a_heavy_tail_is_recognised(fitted: dict[str, Any]) -> None:
    assert fitted["output_tokens"]["tail"]["family"] == "pareto"
    assert "held-out log-likelihood" in fitted["output_tokens"]["source"]


def test_constants_stay_constant() -> None:
    profile = profile_from_mapping(fit_profile([bare(m) for m in range(6)], name="x", source="test"), "x")
    (info,) = trace_info(synthesize(profile, groups=20, group_size=2, seed=1)).tasks
    for name, value in (("turns", 1), ("output_tokens", 5), ("prompt_tokens", 10), ("env_s", 1.0), ("reward_s", 2.0)):
        found = info.quantities[name]
        assert found is not None and (found.p50, found.max) == (value, value), name
    assert info.reward_mean == 1.0


def test_failures_are_counted_and_their_turns_left_out() -> None:
    failed_turn = (TraceTurn(output_tokens=5, env_s=60.0, outcome="timeout"),)
    lost = {"turns": (), "reset_outcome": "failed", "outcome": "failed", "reward": None}
    trace = [bare(0), bare(1), bare(2, turns=failed_turn, outcome="failed"), bare(3, **lost)]
    task = fit_profile(trace, name="x", source="test")["tasks"]["a"]
    assert task["reset_failures"]["failed"] == 0.25
    assert task["step_failures"]["timeout"] == pytest.approx(1 / 3)
    assert task["step_failures"]["timeout_s"] == 60.0
    assert max(task["env_s"]["quantiles"].values()) == 1.0


def test_compactions_become_a_rule() -> None:
    turns = (
        TraceTurn(output_tokens=100, env_s=1.0),
        TraceTurn(prompt_tokens=900, output_tokens=100, env_s=1.0),
        TraceTurn(prompt_tokens=50, kept_tokens=10, output_tokens=100, env_s=1.0),
    )
    task = fit_profile([bare(m, turns=turns) for m in range(6)], name="x", source="test")["tasks"]["a"]
    assert (task["compaction"]["limit_tokens"], task["compaction"]["summary_tokens"]) == (1110, 50)


def test_missing_times_come_from_the_named_profile_or_nowhere(profiles: Path) -> None:
    trace = [bare(member, turns=(TraceTurn(output_tokens=5),)) for member in range(3)]
    with pytest.raises(TraceError, match=r"task 'a' has no env_s; name a profile"):
        fit_profile(trace, name="x", source="t.jsonl")
    times = load_document(profiles / "tau-bench-times.yaml")
    found = fit_profile(trace, name="x", source="t.jsonl", times=times)["tasks"]["a"]["env_s"]
    assert found["quantiles"] == times["tasks"]["tau-bench-airline"]["env_s"]["quantiles"]
    assert found["guess"] is True and found["source"].startswith("not in the trace; from profile tau-bench-times")


def test_no_trajectory_is_an_error() -> None:
    with pytest.raises(TraceError, match="holds no trajectory"):
        fit_profile([], name="x", source="t.jsonl")


def test_what_is_written_reads_back(document: dict[str, Any], tmp_path: Path) -> None:
    found = fit_profile(drawn(document, 40), name="again", source="a draw")
    write_profile(tmp_path / "p.yaml", found)
    assert load_document(tmp_path / "p.yaml") == found
    assert load_profile(tmp_path / "p.yaml").name == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


def test_the_task_shares_are_those_of_the_trace() -> None:
    trace = [bare(0), bare(1), bare(0, task="b")]
    shares = {name: keys["share"] for name, keys in fit_profile(trace, name="x", source="test")["tasks"].items()}
    assert shares == {"a": 2, "b": 1}


def test_the_public_tau_bench_trajectories(public_traces: Path, profiles: Path, tmp_path: Path) -> None:
    source, trace = public_traces / "tau_bench/gpt-4o-airline.json.gz", tmp_path / "tau.jsonl"
    assert CliRunner().invoke(app, ["trace", "import", "tau-bench", str(source), "-o", str(trace)]).exit_code == 0
    original = list(TraceReader(trace))
    times = load_document(profiles / "tau-bench-times.yaml")
    profile = profile_from_mapping(fit_profile(original, name="x", source="tau", times=times), "x")
    (old,) = trace_info(original).tasks
    (new,) = trace_info(synthesize(profile, groups=500, group_size=4, seed=1)).tasks
    for name in ("turns", "response_tokens", "context_tokens"):
        before, after = old.quantities[name], new.quantities[name]
        assert before is not None and after is not None
        assert after.mean == pytest.approx(before.mean, rel=0.06), name
        assert after.p90 == pytest.approx(before.p90, rel=0.1), name
    assert np.isclose(new.reward_mean, 0.42, atol=0.03)
