"""What logs say of trainers that die, and of runs that are resumed."""

import msgspec
import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import End
from rollart.report.spans import spans
from rollart.runlog.invariants import check_invariants
from rollart.runlog.stages import Stage
from tests.runlog.scripts import (
    Line,
    generate,
    generated,
    ready,
    records_of,
    reduce_script,
    reset,
    score,
    step,
    stepped,
    train,
)
from tests.runlog.toyrun import header


def episode(first: int, trajectory: int, begin_s: float) -> list[Line]:
    """From the answer to a reset `first` to the score; its batch is not ordered."""
    t, close = begin_s, c.CloseEnvironment(id=first + 3, trajectory=trajectory)
    return [
        (t, ready(first), [generate(first + 1, trajectory)]),
        (t + 4, generated(first + 1), [step(first + 2, trajectory)]),
        (
            t + 5,
            stepped(first + 2),
            [close, score(first + 4, trajectory)],
        ),
        (t + 5, e.EnvironmentClosed(command_id=first + 3), []),
    ]


def scored(first: int, trajectory: int, time_s: float, *orders: c.Command) -> Line:
    end = c.EndTrajectory(id=first + 5, trajectory=trajectory, end=End.TRAINED)
    return time_s, e.TrajectoryScored(command_id=first + 4, reward=1.0), [end, *orders]


def restart(number: int, version: int = 0, incarnation: int = 1) -> c.RestartTrainer:
    return c.RestartTrainer(id=number, incarnation=incarnation, version=version)


def lost_trainer(*, again: c.TrainBatch | None = None, version: int = 0) -> list[Line]:
    """Trained from 10 s, lost at 14 s, back at 16 s, trained again to 26 s."""
    return [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        *episode(0, 0, 2.0),
        scored(0, 0, 10.0, train(6, 0)),
        (14.0, e.TrainerLost(incarnation=0), [restart(7, version)]),
        (16.0, e.TrainerStarted(command_id=7), [again or train(8, 0)]),
        (26.0, e.TrainingEnded(command_id=8, version=1), [c.StopRun(id=9)]),
    ]


def violation(script: list[Line]) -> str | None:
    return check_invariants(records_of(script), header(), staleness_bound=1).violation


def test_a_step_may_be_done_again_after_the_trainer_was_lost() -> None:
    assert violation(lost_trainer()) is None


def test_a_batch_may_not_be_trained_twice_without_a_loss() -> None:
    script = lost_trainer()
    script[6] = (14.0, e.TimerFired(command_id=99), [])
    assert violation(script) is not None
    kept = [line for line in lost_trainer() if not isinstance(line[1], e.TrainerLost | e.TrainerStarted)]
    kept[-1:] = [
        (20.0, e.TrainingEnded(command_id=6, version=1), [train(8, 0, step=1)]),
        (26.0, e.TrainingEnded(command_id=8, version=2), [c.StopRun(id=9)]),
    ]
    assert "trajectory 0 is in a batch and has not ended once as trained" in str(violation(kept))


def test_the_batch_of_a_step_that_a_checkpoint_has_is_not_free() -> None:
    script = [
        *lost_trainer()[:6],
        (20.0, e.TrainingEnded(command_id=6, version=1), []),
        (21.0, e.TrainerLost(incarnation=0), [restart(7, version=1)]),
        (22.0, e.TrainerStarted(command_id=7), [train(8, 0, step=1)]),
        (26.0, e.TrainingEnded(command_id=8, version=2), [c.StopRun(id=9)]),
    ]
    assert "trajectory 0 is in a batch and has not ended once as trained" in str(violation(script))


def test_a_trainer_is_restarted_as_a_new_incarnation() -> None:
    script = lost_trainer()
    script[6] = (14.0, e.TrainerLost(incarnation=0), [restart(7, incarnation=0)])
    assert "the trainer is restarted as incarnation 0 after 0" in str(violation(script))


def test_the_time_of_a_lost_trainer_belongs_to_the_step() -> None:
    (only,) = reduce_script(header(), lost_trainer()).steps
    assert only.duration_s == 26.0
    assert only.stages_s[Stage.TRAINING] == pytest.approx(16.0)
    assert sum(only.stages_s.values()) == pytest.approx(26.0)
    assert only.busy_s[Stage.TRAINING] == pytest.approx(16.0)


def test_a_step_that_is_done_again_is_no_further_step() -> None:
    script = lost_trainer()
    script[5] = scored(0, 0, 10.0, msgspec.structs.replace(train(6, 0), checkpoint=False))
    script[6:] = [
        (20.0, e.TrainingEnded(command_id=6, version=1), []),
        (21.0, e.TrainerLost(incarnation=0), [restart(7)]),
        (22.0, e.TrainerStarted(command_id=7), [train(8, 0)]),
        (26.0, e.TrainingEnded(command_id=8, version=1), [c.StopRun(id=9)]),
    ]
    assert violation(script) is None
    statistics = reduce_script(header(), script)
    assert [(each.begin_s, each.end_s) for each in statistics.steps] == [(0.0, 20.0)]


def resumed() -> list[Line]:
    """The driver is gone at 5 s; one engine and the trainer come back, and the trajectory begins again."""
    back = c.RestartEngine(id=2, engine=0, incarnation=1)
    update = c.UpdateEngine(id=6, engine=0, incarnation=1, version=0, source=c.WeightSource.STORE)
    return [
        (0.0, e.RunStarted(), [reset(0, 0)]),
        (2.0, ready(0), [generate(1, 0)]),
        (5.0, e.RunResumed(), [back, restart(3), reset(4, 0, attempt=1)]),
        (6.0, e.TrainerStarted(command_id=3), []),
        (7.0, e.EngineStarted(command_id=2), [update]),
        (8.0, e.EngineUpdated(command_id=6, version=0), [c.ResumeEngine(id=7, engine=0, incarnation=1)]),
        (8.0, e.EngineResumed(command_id=7), []),
        (9.0, ready(4), [generate(8, 0, incarnation=1)]),
        (10.0, generated(8), [step(9, 0)]),
        (11.0, stepped(9), [c.CloseEnvironment(id=10, trajectory=0), score(11, 0)]),
        (11.0, e.EnvironmentClosed(command_id=10), []),
        (
            12.0,
            e.TrajectoryScored(command_id=11, reward=1.0),
            [c.EndTrajectory(id=12, trajectory=0, end=End.TRAINED), train(13, 0)],
        ),
        (22.0, e.TrainingEnded(command_id=13, version=1), [c.StopRun(id=14)]),
    ]


def test_a_resumed_run_keeps_its_promises() -> None:
    assert violation(resumed()) is None
    (only,) = reduce_script(header(), resumed()).steps
    assert sum(only.stages_s.values()) == pytest.approx(22.0)


def test_an_engine_that_was_not_restarted_after_a_resumption_is_down() -> None:
    script = resumed()
    script[2] = (5.0, e.RunResumed(), [restart(3), reset(4, 0, attempt=1), generate(5, 0)])
    assert "an order to engine 0, which is down" in str(violation(script))


def test_what_was_open_when_the_driver_was_gone_is_lost() -> None:
    shown = [(span.what, span.end_s) for span in spans(records_of(resumed()), steps=None) if span.outcome == "lost"]
    assert shown == [("GenerateTurn", 5.0)]
    lost = [(span.what, span.end_s) for span in spans(records_of(lost_trainer()), steps=None) if span.outcome == "lost"]
    assert lost == [("TrainBatch", 14.0)]
