"""The run log of a run as a trace: what was seen is what is played again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import TraceError
from rollart.domain.trajectory import Cause, End
from rollart.runlog.writer import RunLogWriter
from rollart.sim import simulate
from rollart.workload.importers import ImportOptions, TraceImport, import_trace
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trajectory import TrajectorySpec
from tests.runlog.scripts import Line, generate, generated, ready, reset, score, step, stepped, write
from tests.runlog.toyrun import ToyRun, header
from tests.sim.real_jobs import profiled, real_job


def logged(path: Path, script: Sequence[Line], *, driver: str = "exec") -> Path:
    path.parent.mkdir(exist_ok=True)
    with RunLogWriter(path, msgspec.structs.replace(header(), driver=driver)) as writer:
        write(writer, script)
    return path


def turns(one: TraceTrajectory) -> list[tuple[int, int | None, int, float | None, str]]:
    return [(turn.prompt_tokens, turn.kept_tokens, turn.output_tokens, turn.env_s, turn.outcome) for turn in one.turns]


def end(number: int, trajectory: int = 0, how: End = End.TRAINED) -> c.EndTrajectory:
    return c.EndTrajectory(id=number, trajectory=trajectory, end=how)


def close(number: int, trajectory: int = 0) -> c.CloseEnvironment:
    return c.CloseEnvironment(id=number, trajectory=trajectory)


WHOLE: list[Line] = [
    (0.0, e.RunStarted(), [reset(0, 0, prompt=7, group=3)]),
    (2.0, ready(0), [generate(1, 0)]),
    (6.0, generated(1), [step(2, 0)]),
    (7.5, e.EnvironmentStepped(command_id=2, observation_tokens=30, kept_tokens=90, done=False), [generate(3, 0)]),
    (9.0, generated(3), [step(4, 0)]),
    (9.25, stepped(4), [close(5), score(6, 0)]),
    (12.25, e.TrajectoryScored(command_id=6, reward=1.0), [end(7)]),
]


def test_a_trajectory_has_the_tokens_and_the_times_of_the_run(tmp_path: Path) -> None:
    (one,) = import_trace("rollart", logged(tmp_path / "runlog.parquet", WHOLE))
    assert (one.task, one.group, one.member, one.prompt_tokens) == ("maze", "prompt 7, group 3", 0, 10)
    assert turns(one) == [(90, None, 50, 1.5, "ok"), (30, 90, 50, 0.25, "ok")]
    assert (one.reset_s, one.reward_s, one.reward, one.outcome) == (2.0, 3.0, 1.0, "ok")
    assert set(one.provenance.values()) == {"counted", "measured"}
    assert one.contexts() == [100, 120]


def test_what_a_simulation_wrote_is_drawn(tmp_path: Path) -> None:
    (one,) = import_trace("rollart", logged(tmp_path / "runlog.parquet", WHOLE, driver="sim"))
    assert set(one.provenance.values()) == {"drawn"}


def test_a_turn_that_was_interrupted_is_one_turn(tmp_path: Path) -> None:
    again = msgspec.structs.replace(generate(4, 0), partial_tokens=20)
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (1.0, ready(0), [generate(1, 0)]),
        (2.0, e.RunStarted(), [c.AbortGeneration(id=2, target=1, trajectory=0, engine=0, incarnation=0)]),
        (2.1, generated(1), []),
        (2.2, e.GenerationAborted(command_id=2, output_tokens=20), [again]),
        (3.0, generated(4, truncated=True), [close(5), score(6, 0)]),
        (4.0, e.TrajectoryScored(command_id=6, reward=0.0), [end(7)]),
    ]
    (one,) = import_trace("rollart", logged(tmp_path / "runlog.parquet", script))
    assert turns(one) == [(90, None, 70, 0.0, "ok")]
    assert one.outcome == "truncated"


def test_an_attempt_that_failed_is_a_trajectory_of_its_own(tmp_path: Path) -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (60.0, e.EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT), [close(1), c.SetTimer(id=2, delay_s=1.0)]),
        (61.0, e.TimerFired(command_id=2), [reset(3, 0, attempt=1)]),
        (63.0, ready(3), [generate(4, 0)]),
        (64.0, generated(4), [step(5, 0)]),
        (66.0, e.EnvironmentFailed(command_id=5, cause=Cause.ERROR), [close(6), c.SetTimer(id=7, delay_s=1.0)]),
        (67.0, e.TimerFired(command_id=7), [reset(8, 0, attempt=2)]),
        (68.0, ready(8), [generate(9, 0)]),
        (69.0, generated(9), [step(10, 0)]),
        (70.0, stepped(10), [close(11), score(12, 0)]),
        (71.0, e.TrajectoryScored(command_id=12, reward=1.0), [end(13)]),
    ]
    found = list(import_trace("rollart", logged(tmp_path / "runlog.parquet", script)))
    assert [(one.member, one.reset_s, one.reset_outcome, one.outcome) for one in found] == [
        (0, 60.0, "timeout", "failed"),
        (1, 2.0, "ok", "failed"),
        (2, 1.0, "ok", "ok"),
    ]
    assert [turns(one) for one in found[:2]] == [[], [(90, None, 50, 2.0, "failed")]]


def test_what_the_run_cut_short_is_left_out_and_counted(tmp_path: Path) -> None:
    script: list[Line] = [
        *WHOLE,
        (13.0, e.RunStarted(), [reset(20, 1), reset(21, 2), reset(22, 3)]),
        (14.0, ready(20), [generate(23, 1)]),
        (15.0, e.RunStarted(), [close(24, 1), end(25, 1, End.SURPLUS), close(26, 2), end(27, 2, End.SURPLUS)]),
        (16.0, e.RunStarted(), [end(28, 3, End.UNFINISHED), c.StopRun(id=29)]),
    ]
    path = logged(tmp_path / "runlog.parquet", script)
    job = TraceImport([path], ImportOptions(format="auto", strict=True))
    assert len(list(job)) == 1
    assert job.unusable == {"cut short as surplus": 2, "cut short as unfinished": 1}
    assert (job.bad_records, dict(job.formats)) == (0, {"rollart": 1})


def test_runs_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in "ab":
        logged(tmp_path / name / "runlog.parquet", WHOLE)
        (tmp_path / name / "summary.json").write_text(json.dumps({"steps": 1}))
    job = TraceImport([tmp_path], ImportOptions(format="rollart"))
    assert [one.group for one in job] == [f"{tmp_path / name}, prompt 7, group 3" for name in "ab"]
    assert [path.name for path in job.left_out] == ["summary.json"] * 2


def test_parquet_that_is_no_run_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(logged(tmp_path / "runlog.parquet", WHOLE).read_bytes()[:-100])
    with pytest.raises(TraceError, match=r"cut.parquet: Parquet file is damaged or cut off"):
        list(import_trace("rollart", path))
    with pytest.raises(TraceError, match="this looks like rollart, not like verl"):
        list(import_trace("verl", tmp_path / "runlog.parquet"))
    (tmp_path / "text.jsonl").write_text('{"seq": 1}\n')
    with pytest.raises(TraceError, match=r"must be a run log of RollArt"):
        list(import_trace("rollart", tmp_path / "text.jsonl"))


def test_a_run_in_trouble_gives_sound_trajectories(tmp_path: Path) -> None:
    with RunLogWriter(tmp_path / "runlog.parquet", header()) as writer:
        ToyRun(writer=writer).play()
    found = list(import_trace("rollart", tmp_path / "runlog.parquet"))
    sound = [one for one in found if one.outcome == "ok"]
    assert len(sound) >= 16
    assert all(one.contexts()[0] == 100 and [turn.kept_tokens for turn in one.turns[:2]] == [None] * 2 for one in sound)
    assert all(one.turns[2].kept_tokens == 50 and one.reward is not None for one in sound)


class _Remembering:
    """A workload that remembers what was asked of it."""

    def __init__(self) -> None:
        self._workload = profiled()
        self.asked: list[TrajectorySpec] = []

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        found = self._workload.trajectory(task, prompt, member, attempt)
        self.asked.append(found)
        return found


def played(spec: TrajectorySpec) -> tuple[object, ...]:
    prompt = (spec.task, f"prompt {spec.prompt}", spec.prompt_tokens)
    return (*prompt, tuple(spec.new_tokens), tuple(spec.output_tokens), spec.reward)


def recorded(one: TraceTrajectory) -> tuple[object, ...]:
    new, output = zip(*((turn.prompt_tokens, turn.output_tokens) for turn in one.turns), strict=True)
    return one.task, one.group.split(",")[0], one.prompt_tokens, new, output, one.reward


def test_a_simulated_run_is_the_next_simulations_input(tmp_path: Path) -> None:
    workload = _Remembering()
    simulate(real_job(), workload, log_path=tmp_path / "runlog.parquet", code_version="test")
    found = list(import_trace("rollart", tmp_path / "runlog.parquet"))
    assert len(found) >= 3 * 16
    assert {recorded(one) for one in found} <= {played(spec) for spec in workload.asked}
    took_s = sum(turn.env_s or 0.0 for one in found for turn in one.turns)
    alone_s = {played(spec): sum(spec.env_s) for spec in workload.asked}
    assert took_s == pytest.approx(sum(alone_s[recorded(one)] for one in found), rel=0.05)
    again = simulate(replace(real_job(), steps=1), TraceWorkload(found), log_path=None, code_version="test")
    assert again.statistics.ends[End.TRAINED] == 16
