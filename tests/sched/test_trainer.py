"""A trainer that dies: it comes back from its checkpoint and does again what that lacks."""

import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import StuckError
from rollart.sched.state import SyncPhase
from tests.sched.dialogue import Dialogue, briefly
from tests.sched.setups import Overrides, engines, setup, task


def short(preset: str = "one-off", overrides: Overrides | None = None, *, steps: int = 5) -> Dialogue:
    """Groups of one, one group in a batch, one engine."""
    return Dialogue(setup(preset, overrides, tasks=(task(size=1),), classes=(engines(count=1),), steps=steps))


def seldom(every: int) -> Overrides:
    """A checkpoint at every so many steps."""
    return {"recovery": {"checkpoint_every": every}}


def update(talk: Dialogue) -> list[c.Command]:
    """Everything between suspend and resume."""
    talk.answer(c.SuspendEngine, 0)
    talk.pushed()
    talk.answer(c.UpdateEngine, 0)
    return talk.answer(c.ResumeEngine, 0)


def lose(talk: Dialogue, incarnation: int = 0) -> list[c.Command]:
    """The trainer dies."""
    return talk.tell(e.TrainerLost(incarnation=incarnation))


def back(talk: Dialogue) -> list[c.Command]:
    """It has loaded its checkpoint."""
    return talk.tell(e.TrainerStarted(command_id=talk.last(c.RestartTrainer).id))


def test_a_batch_under_way_is_trained_again_from_the_checkpoint() -> None:
    talk = short()
    talk.finish(0)
    first = talk.last(c.TrainBatch)
    (restart,) = lose(talk)
    assert isinstance(restart, c.RestartTrainer)
    assert (restart.incarnation, restart.version) == (1, 0)
    assert talk.tell(e.TrainingEnded(command_id=first.id, version=1)) == []
    (again,) = back(talk)
    assert isinstance(again, c.TrainBatch)
    assert (again.version, again.trajectories) == (1, first.trajectories)
    assert again.id > first.id
    talk.trained()
    assert talk.controller.state.trained == 1


def test_steps_that_no_checkpoint_has_are_done_again_in_order() -> None:
    talk = short(overrides=seldom(3))
    talk.finish(0)
    talk.trained()
    talk.finish(1)
    update(talk)
    talk.trained()
    assert [batch.checkpoint for batch in talk.all(c.TrainBatch)] == [False, False]
    (restart,) = lose(talk)
    assert isinstance(restart, c.RestartTrainer)
    assert restart.version == 0
    (first,) = back(talk)
    (second,) = talk.trained()
    assert isinstance(first, c.TrainBatch) and isinstance(second, c.TrainBatch)
    assert [(b.version, b.trajectories, b.installed) for b in (first, second)] == [(1, (0,), 0), (2, (1,), 0)]
    assert talk.trained() == []
    assert talk.controller.state.trained == 2
    assert briefly(talk.finish(2)) == ["EndTrajectory 2", "SuspendEngine 0"]


def test_a_checkpoint_frees_the_steps_before_it() -> None:
    talk = short(overrides=seldom(2))
    talk.finish(0)
    talk.trained()
    assert [step.version for step in talk.controller.state.trainer.steps] == [1]
    talk.finish(1)
    update(talk)
    assert talk.last(c.TrainBatch).checkpoint
    talk.trained()
    assert talk.controller.state.trainer.steps == []
    (restart,) = lose(talk)
    assert isinstance(restart, c.RestartTrainer)
    assert restart.version == 2
    assert back(talk) == []


def test_the_last_step_is_always_saved() -> None:
    talk = short(overrides=seldom(100), steps=1)
    talk.finish(0)
    assert talk.last(c.TrainBatch).checkpoint


def test_a_batch_that_is_complete_while_the_trainer_is_down_waits_for_it() -> None:
    talk = short()
    lose(talk)
    assert briefly(talk.finish(0)) == ["EndTrajectory 0", "ResetEnvironment 1"]
    assert briefly(back(talk)) == ["TrainBatch"]


def test_a_push_that_is_cut_short_is_made_again() -> None:
    talk = short("rollart")
    talk.finish(0)
    assert briefly(talk.trained()) == ["PushWeights", "PullWeights 0"]
    push, pull = talk.last(c.PushWeights), talk.last(c.PullWeights)
    lose(talk)
    assert talk.tell(e.WeightsPushed(command_id=push.id, version=1)) == []
    assert talk.tell(e.WeightsPulled(command_id=pull.id, version=1)) == []
    assert briefly(back(talk)) == ["PushWeights", "PullWeights 0"]
    talk.pushed()
    talk.answer(c.PullWeights, 0)
    assert talk.sync is SyncPhase.FETCHED


def test_a_push_that_comes_due_while_the_trainer_is_down_waits_for_it() -> None:
    talk = short()
    talk.finish(0)
    talk.trained()
    lose(talk)
    talk.finish(1)
    assert talk.answer(c.SuspendEngine, 0) == []
    assert briefly(back(talk)) == ["PushWeights"]


def test_a_trainer_that_dies_again_and_again_ends_the_run() -> None:
    talk = short(overrides={"recovery": {"max_trainer_losses": 2}})
    talk.finish(0)
    for incarnation in (0, 1):
        lose(talk, incarnation)
        back(talk)
    talk.trained()
    talk.finish(1)
    update(talk)
    for incarnation in (2, 3):
        lose(talk, incarnation)
        back(talk)
    with pytest.raises(StuckError, match="the trainer was lost 3 times and finished no step between"):
        lose(talk, 4)


def test_a_loss_counts_once_for_each_incarnation() -> None:
    talk = short()
    talk.finish(0)
    lose(talk)
    assert lose(talk) == []
    first = talk.last(c.RestartTrainer)
    (second,) = lose(talk, incarnation=1)
    assert isinstance(second, c.RestartTrainer)
    assert second.incarnation == 2
    assert talk.tell(e.TrainerStarted(command_id=first.id)) == []
    assert briefly(back(talk)) == ["TrainBatch"]
