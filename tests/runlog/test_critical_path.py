import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause, End
from rollart.runlog.critical_path import Segment
from rollart.runlog.reducer import Reducer
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
    train,
)
from tests.runlog.toyrun import header


def path_of(script: list[Line], step: int = 0) -> list[tuple[float, float, Stage, str | None]]:
    path = reduce_script(header(), script).steps[step].path
    return [(each.begin_s, each.end_s, each.stage, each.command) for each in path]


def ending(t: float, number: int) -> list[Line]:
    """Score trajectory 0 from `t` on, end it, train for 10 s."""
    return [
        (
            t + 3,
            e.TrajectoryScored(command_id=number, reward=1.0),
            [c.EndTrajectory(id=number + 1, trajectory=0, end=End.TRAINED), train(number + 2, 0)],
        ),
        (t + 13, e.TrainingEnded(command_id=number + 2, version=1), [c.StopRun(id=number + 3)]),
    ]


def test_the_path_names_what_was_waited_for() -> None:
    path = reduce_script(header(), one_step_run()).steps[0].path
    assert path[1] == Segment(
        begin_s=2.0, end_s=6.0, stage=Stage.GENERATION, command="GenerateTurn", trajectory=0, engine=0
    )
    assert path_of(one_step_run()) == [
        (0.0, 2.0, Stage.ENVIRONMENT, "ResetEnvironment"),
        (2.0, 6.0, Stage.GENERATION, "GenerateTurn"),
        (6.0, 7.0, Stage.ENVIRONMENT, "StepEnvironment"),
        (7.0, 10.0, Stage.REWARD, "ScoreTrajectory"),
        (10.0, 20.0, Stage.TRAINING, "TrainBatch"),
    ]


def test_a_suspension_within_a_turn_is_exposed_weight_sync() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), c.SuspendEngine(id=1, engine=0, incarnation=0, release_memory=False)]),
        (1.0, ready(0), [generate(2, 0)]),
        (
            2.0,
            e.EngineSuspended(command_id=1),
            [c.ResumeEngine(id=3, engine=0, incarnation=0)],
        ),
        (4.5, e.EngineResumed(command_id=3), []),
        (6.0, generated(2), [score(4, 0)]),
        *ending(6.0, 4),
    ]
    assert path_of(script)[1:4] == [
        (1.0, 2.0, Stage.GENERATION, "GenerateTurn"),
        (2.0, 4.5, Stage.WEIGHT_SYNC_EXPOSED, "GenerateTurn"),
        (4.5, 6.0, Stage.GENERATION, "GenerateTurn"),
    ]
    (only,) = reduce_script(header(), script).steps
    assert only.busy_s[Stage.WEIGHT_SYNC_EXPOSED] == 2.5


def test_a_suspended_engine_elsewhere_does_not_matter() -> None:
    suspend = c.SuspendEngine(id=1, engine=1, incarnation=0, release_memory=False)
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), suspend]),
        (0.5, e.EngineSuspended(command_id=1), []),
        (2.0, ready(0), [generate(2, 0)]),
        (6.0, generated(2), [score(3, 0)]),
        *ending(6.0, 3),
    ]
    assert path_of(script)[1] == (2.0, 6.0, Stage.GENERATION, "GenerateTurn")


def test_a_back_off_is_waiting() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (
            1.0,
            e.EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT),
            [c.CloseEnvironment(id=1, trajectory=0), c.SetTimer(id=2, delay_s=4.0)],
        ),
        (1.5, e.EnvironmentClosed(command_id=1), []),
        (5.0, e.TimerFired(command_id=2), [reset(3, 0, attempt=1)]),
        (6.0, ready(3), [generate(4, 0)]),
        (7.0, generated(4), [score(5, 0)]),
        *ending(7.0, 5),
    ]
    assert path_of(script)[:3] == [
        (0.0, 1.0, Stage.ENVIRONMENT, "ResetEnvironment"),
        (1.0, 5.0, Stage.WAITING_FOR_BATCH, "SetTimer"),
        (5.0, 6.0, Stage.ENVIRONMENT, "ResetEnvironment"),
    ]


def test_a_lost_engine_leads_back_to_the_turn_that_is_begun_again() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), reset(1, 1)]),
        (1.0, ready(0), [generate(2, 0)]),
        (2.0, ready(1), [generate(3, 1)]),
        (
            5.0,
            e.EngineLost(engine=0, incarnation=0, commands=(2, 3), saved_tokens=(5, 5)),
            [
                generate(4, 0, engine=1),
                generate(5, 1, engine=1),
                c.RestartEngine(id=6, engine=0, incarnation=1),
            ],
        ),
        (8.0, generated(4), [score(7, 0)]),
        *ending(8.0, 7),
    ]
    assert path_of(script)[:3] == [
        (0.0, 1.0, Stage.ENVIRONMENT, "ResetEnvironment"),
        (1.0, 5.0, Stage.GENERATION, "GenerateTurn"),
        (5.0, 8.0, Stage.GENERATION, "GenerateTurn"),
    ]


def test_an_idle_engine_that_is_lost_leads_to_the_event_before() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (1.0, ready(0), []),
        (
            3.0,
            e.EngineLost(engine=1, incarnation=0, commands=(), saved_tokens=()),
            [generate(1, 0)],
        ),
        (4.0, generated(1), [score(2, 0)]),
        *ending(4.0, 2),
    ]
    assert path_of(script)[:3] == [
        (0.0, 1.0, Stage.ENVIRONMENT, "ResetEnvironment"),
        (1.0, 3.0, Stage.WAITING_FOR_BATCH, None),
        (3.0, 4.0, Stage.GENERATION, "GenerateTurn"),
    ]


@pytest.mark.parametrize("window_records", [2, 4, 1000])
def test_a_command_older_than_the_step_is_clipped(window_records: int) -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (2.0, ready(0), [generate(1, 0), reset(30, 1)]),
        (6.0, generated(1), [score(31, 0)]),
        (10.0, e.TrajectoryScored(command_id=31, reward=0.0), [train(32, 0)]),
        (20.0, e.TrainingEnded(command_id=32, version=1), [c.PushWeights(id=33, version=1, broadcast=False)]),
        (26.0, ready(30), [train(34, 1, step=1)]),
        (30.0, e.TrainingEnded(command_id=34, version=2), [c.StopRun(id=35)]),
    ]
    statistics = reduce_script(header(), script, window_records)
    path = [(each.begin_s, each.end_s, each.stage) for each in statistics.steps[1].path]
    assert path == [(20.0, 26.0, Stage.ENVIRONMENT), (26.0, 30.0, Stage.TRAINING)]
    assert statistics.steps[1].path[0].trajectory == 1


def test_time_in_the_controller_is_waiting() -> None:
    """A command that was logged later than its cause leaves a gap, which is nobody's work."""
    reducer = Reducer(header())
    with RunLogWriter(None, header(), [reducer]) as writer:
        started = writer.event(0.0, e.RunStarted())
        writer.commands(0.5, [train(0)], started)
        writer.event(2.0, e.TrainingEnded(command_id=0, version=1))
    (only,) = reducer.statistics().steps
    assert only.stages_s[Stage.WAITING_FOR_BATCH] == 0.5
    assert only.stages_s[Stage.TRAINING] == 1.5
