from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.runlog.stages import Stage
from tests.runlog.scripts import Line, generate, generated, ready, reduce_script, reset, train
from tests.runlog.toyrun import header


def busy(script: list[Line]) -> dict[Stage, float]:
    return dict(reduce_script(header(), script).steps[0].busy_s)


def test_overlapping_turns_count_once() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [generate(0, 0), generate(1, 1)]),
        (3.0, generated(0), [generate(2, 0)]),
        (5.0, generated(1), []),
        (6.0, generated(2), []),
        (8.0, e.TimerFired(command_id=99), [train(3)]),
        (9.0, e.TrainingEnded(command_id=3, version=1), []),
    ]
    assert busy(script)[Stage.GENERATION] == 6.0
    assert busy(script)[Stage.WAITING_FOR_BATCH] == 8.0


def test_a_closed_environment_is_no_longer_busy_with_its_step() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (1.0, e.TimerFired(command_id=99), [c.CloseEnvironment(id=1, trajectory=0)]),
        (1.5, e.EnvironmentClosed(command_id=1), [train(2)]),
        (9.0, e.TrainingEnded(command_id=2, version=1), []),
    ]
    assert busy(script)[Stage.ENVIRONMENT] == 1.5


def test_a_close_takes_only_the_orders_before_it() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), c.CloseEnvironment(id=1, trajectory=0), reset(2, 0, attempt=1)]),
        (0.5, e.EnvironmentClosed(command_id=1), []),
        (4.0, ready(2), [train(3)]),
        (9.0, e.TrainingEnded(command_id=3, version=1), []),
    ]
    assert busy(script)[Stage.ENVIRONMENT] == 4.0


def test_engines_that_lent_their_memory_to_training_do_not_wait_for_weights() -> None:
    suspend = c.SuspendEngine(id=0, engine=0, incarnation=0, release_memory=True)
    script: list[Line] = [
        (0.0, e.RunStarted(), [suspend]),
        (1.0, e.EngineSuspended(command_id=0), []),
        (2.0, e.TimerFired(command_id=99), [train(1)]),
        (9.0, e.TrainingEnded(command_id=1, version=1), []),
    ]
    assert busy(script)[Stage.WEIGHT_SYNC_EXPOSED] == 1.0
    assert busy(script)[Stage.TRAINING] == 7.0
    assert busy(script)[Stage.WAITING_FOR_BATCH] == 1.0


def test_a_lost_engine_is_not_suspended() -> None:
    suspend = c.SuspendEngine(id=0, engine=0, incarnation=0, release_memory=False)
    script: list[Line] = [
        (0.0, e.RunStarted(), [suspend]),
        (1.0, e.EngineSuspended(command_id=0), []),
        (
            3.0,
            e.EngineLost(engine=0, incarnation=0, commands=(), saved_tokens=()),
            [c.RestartEngine(id=1, engine=0, incarnation=1)],
        ),
        (5.0, e.EngineStarted(command_id=1), [c.ResumeEngine(id=2, engine=0, incarnation=1)]),
        (6.0, e.EngineResumed(command_id=2), [train(3)]),
        (9.0, e.TrainingEnded(command_id=3, version=1), []),
    ]
    assert busy(script)[Stage.WEIGHT_SYNC_EXPOSED] == 3.0
