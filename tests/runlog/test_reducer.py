import math
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause, End
from rollart.runlog.header import RewardEntry
from rollart.runlog.reader import read_header, windows
from rollart.runlog.reducer import Reducer, reduce_windows
from rollart.runlog.samples import EngineSample, RewardSample, TrainerSample
from rollart.runlog.stages import Stage
from rollart.runlog.writer import RunLogWriter
from tests.runlog.scripts import (
    Line,
    generate,
    generated,
    one_step_run,
    ready,
    reduce_script,
    reset,
    score,
    step,
    stepped,
    train,
)
from tests.runlog.toyrun import ToyRun, header


def engine_sample(engine: int, busy_s: float, **changes: float) -> EngineSample:
    fields: dict[str, float] = dict.fromkeys(EngineSample.__struct_fields__, 0)
    return EngineSample(**(fields | {"engine": engine, "busy_s": busy_s} | changes))


def test_one_step() -> None:
    statistics = reduce_script(header(), one_step_run())
    (only,) = statistics.steps
    assert (only.begin_s, only.end_s, only.trajectories, only.tokens) == (0.0, 20.0, 1, 100)
    assert only.staleness == (0,) and only.lag == (0,)
    assert only.stages_s == {
        Stage.ENVIRONMENT: 3.0,
        Stage.GENERATION: 4.0,
        Stage.REWARD: 3.0,
        Stage.TRAINING: 10.0,
        Stage.WEIGHT_SYNC_EXPOSED: 0.0,
        Stage.WAITING_FOR_BATCH: 0.0,
    }
    assert only.busy_s == {
        Stage.GENERATION: 4.0,
        Stage.ENVIRONMENT: 3.5,
        Stage.REWARD: 3.0,
        Stage.TRAINING: 10.0,
        Stage.WEIGHT_SYNC_EXPOSED: 0.0,
        Stage.WAITING_FOR_BATCH: 10.0,
    }
    assert statistics.ends[End.TRAINED] == 1 and statistics.open_trajectories == 0
    assert (statistics.events, statistics.turns, statistics.end_s) == (7, 1, 20.0)
    maze, math_task = statistics.tasks
    assert (maze.task, maze.started, maze.mean_reward, maze.mean_turns) == ("maze", 1, 1.0, 1.0)
    assert (math_task.started, math_task.mean_reward) == (0, None)


def test_the_first_step_begins_with_the_run() -> None:
    (only,) = reduce_script(header(), one_step_run(begin_s=5.0)).steps
    assert (only.begin_s, only.duration_s) == (5.0, 20.0)
    assert math.fsum(only.stages_s.values()) == 20.0


def test_staleness_and_lag_are_counted_apart() -> None:
    script = one_step_run()
    late = msgspec.structs.replace(train(6, 0, step=4, installed=2), start_versions=(1,))
    script[5] = (10.0, script[5][1], [script[5][2][0], late])
    (only,) = reduce_script(header(), script).steps
    assert only.staleness == (1,) and only.lag == (3,)
    assert reduce_script(header(), script).staleness_histogram() == {1: 1}


def test_usage_is_what_the_samples_gained() -> None:
    samples: list[Line] = [
        (20.0, engine_sample(0, 5.0, kv_block_s=300.0, kv_capacity_blocks=30), []),
        (20.0, engine_sample(1, 1.0, kv_block_s=60.0, kv_capacity_blocks=30), []),
        (20.0, TrainerSample(busy_s=10.0), []),
        (20.0, RewardSample(busy_s=3.0, billed_s=4.0, cold_starts=1), []),
    ]
    (only,) = reduce_script(header(), one_step_run() + samples).steps
    assert only.usage is not None
    assert only.usage.pool_busy_device_s == {"rollout": 12.0, "train": 80.0}
    assert (only.usage.kv_block_s, only.usage.kv_capacity_block_s) == (360.0, 1200.0)
    # 4 x 36 + 8 x 72 an hour for devices, 100 cores at 0.36 an hour, and 4 s of rewards at 0.5.
    assert only.usage.cost == pytest.approx((144 + 576 + 36) / 3600 * 20 + 2.0)


def test_without_samples_usage_is_unknown() -> None:
    statistics = reduce_script(header(), one_step_run())
    assert statistics.steps[0].usage is None and statistics.waste is None


def waste_script(end: End, *, attempt: int = 0) -> list[Line]:
    """Trajectory 0 is trained on after 4 s on an engine, trajectory 1 meets `end` after 6 s."""
    script = one_step_run()
    script[0] = (0.0, e.RunStarted(), [reset(0, 0), reset(10, 1)])
    script[1] = (2.0, ready(0), [generate(11, 0), generate(12, 1)])
    script[2] = (6.0, generated(11), [step(13, 0)])
    script[3] = (7.0, stepped(13), [c.CloseEnvironment(id=14, trajectory=0), score(15, 0)])
    script[4] = (7.5, e.EnvironmentClosed(command_id=14), [])
    script[5] = (
        8.0,
        generated(12),
        [c.EndTrajectory(id=16, trajectory=1, end=end)] if not attempt else [reset(16, 1, attempt=1)],
    )
    script[6] = (
        10.0,
        e.TrajectoryScored(command_id=15, reward=1.0),
        [c.EndTrajectory(id=17, trajectory=0, end=End.TRAINED), train(18, 0)],
    )
    counted = {"prefill_tokens": 200, "recomputed_tokens": 50, "recompute_preempted_tokens": 20}
    return [
        *script,
        (20.0, e.TrainingEnded(command_id=18, version=1), [c.StopRun(id=20)]),
        (20.0, engine_sample(0, 8.0, **counted), []),
    ]


@pytest.mark.parametrize("end", [End.STALE, End.SURPLUS, End.FAILED])
def test_an_end_wastes_its_share_of_the_engines_work(end: End) -> None:
    waste = reduce_script(header(), waste_script(end)).waste
    assert waste is not None
    # 8 busy seconds on 2 devices, of which 6 of 10 seconds of residency.
    assert getattr(waste, end.value) == pytest.approx(9.6)
    assert sum((waste.stale, waste.surplus, waste.failed)) == pytest.approx(9.6)


def test_a_given_up_attempt_is_failed_work() -> None:
    waste = reduce_script(header(), waste_script(End.FAILED, attempt=1), window_records=3).waste
    assert waste is not None
    assert (waste.stale, waste.surplus) == (0.0, 0.0)
    assert waste.failed == pytest.approx(9.6)


def test_recomputation_wastes_its_share_of_prefill() -> None:
    waste = reduce_script(header(), waste_script(End.STALE)).waste
    assert waste is not None
    # A quarter of 16 device seconds is prefill, of which 30 and 20 of 200 tokens.
    assert waste.recomputed == pytest.approx(4 * 30 / 200)
    assert waste.preempted == pytest.approx(4 * 20 / 200)


def test_a_trajectory_that_was_never_reset_is_counted_apart() -> None:
    script = one_step_run()
    script[-1] = (
        20.0,
        e.TrainingEnded(command_id=6, version=1),
        [c.EndTrajectory(id=7, trajectory=3, end=End.UNFINISHED), c.StopRun(id=8)],
    )
    statistics = reduce_script(header(), script)
    assert statistics.never_begun == 1
    assert sum(statistics.ends.values()) == 1


def test_truncated_are_those_cut_at_max_tokens_or_never_done() -> None:
    script = one_step_run()
    assert reduce_script(header(), script).tasks[0].truncated_share == 0.0
    script[3] = (7.0, stepped(2, done=False), script[3][2])
    assert reduce_script(header(), script).tasks[0].truncated_share == 1.0
    script = one_step_run()
    script[2] = (6.0, generated(1, truncated=True), script[2][2])
    assert reduce_script(header(), script).tasks[0].truncated_share == 1.0


def test_a_late_answer_to_an_aborted_turn_is_not_counted() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (1.0, ready(0), [generate(1, 0)]),
        (
            2.0,
            e.EnvironmentFailed(command_id=99, cause=Cause.ERROR),
            [c.AbortGeneration(id=2, target=1, trajectory=0, engine=0, incarnation=0)],
        ),
        (3.0, generated(1), []),
        (4.0, e.GenerationAborted(command_id=2, output_tokens=5), []),
    ]
    for window_records in (2, 3, 100):
        assert reduce_script(header(), script, window_records).turns == 0


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.integers(3, 400))
def test_stages_of_every_step_add_up_and_windows_do_not_matter(seed: int, window_records: int) -> None:
    results = []
    for size in (window_records, 100_000):
        reducer = Reducer(header(seed=seed))
        with RunLogWriter(None, header(seed=seed), [reducer], window_records=size) as writer:
            ToyRun(writer, seed=seed, lose_engine_at_s=8.0 + seed % 9).play()
        results.append(reducer.statistics())
    small, large = results
    assert [step.path for step in small.steps] == [step.path for step in large.steps]
    assert (small.ends, small.tasks, small.turns) == (large.ends, large.tasks, large.turns)
    assert len(small.steps) == 4
    for step_ in small.steps:
        assert math.fsum(step_.stages_s.values()) == pytest.approx(step_.duration_s, rel=1e-9)
        assert all(-1e-9 <= seconds <= step_.duration_s + 1e-9 for seconds in step_.busy_s.values())
        assert step_.path[0].begin_s == step_.begin_s and step_.path[-1].end_s == step_.end_s
        assert all(earlier.end_s == later.begin_s for earlier, later in pairwise(step_.path))


def test_online_and_from_the_file_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "runlog.parquet"
    reducer = Reducer(header())
    with RunLogWriter(path, header(), [reducer], window_records=100) as writer:
        ToyRun(writer).play()
    assert reduce_windows(read_header(path), windows(path)) == reducer.statistics()


def test_what_no_step_can_reach_is_forgotten() -> None:
    reducer = Reducer(header(steps=30))
    with RunLogWriter(None, header(steps=30), [reducer], window_records=50) as writer:
        ToyRun(writer, steps=30, lose_engine_at_s=None).play()
    assert len(reducer.statistics().steps) == 30
    assert len(reducer._book.commands) < 200 and len(reducer._book.events) < 200


def test_free_rewards_cost_nothing() -> None:
    free = msgspec.structs.replace(header(), reward=RewardEntry(price_per_second=0.0))
    sampled: list[Line] = [(20.0, RewardSample(busy_s=3.0, billed_s=4.0, cold_starts=1), [])]
    (only,) = reduce_script(free, one_step_run() + sampled).steps
    assert only.usage is not None and only.usage.cost == pytest.approx(756 / 3600 * 20)
