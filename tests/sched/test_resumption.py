"""A run whose driver was gone: what survives, and in which order the workers come back."""

import math

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.sched.state import Phase, SyncPhase
from tests.sched.dialogue import Dialogue, briefly
from tests.sched.setups import engines, setup, task


def short(preset: str = "one-off", *, slots: int = 64) -> Dialogue:
    """Groups of two, one group in a batch, two engines."""
    return Dialogue(setup(preset, tasks=(task(size=2),), classes=(engines(count=2),), steps=4, slots=slots))


def resume(talk: Dialogue) -> list[c.Command]:
    """The driver is back; it knows nothing of its workers."""
    return talk.tell(e.RunResumed())


def test_what_is_scored_survives_and_the_rest_begins_again() -> None:
    talk = short()
    talk.ready(0)
    talk.finish(1)
    assert briefly(resume(talk)) == ["RestartEngine 0", "RestartEngine 1", "RestartTrainer", "ResetEnvironment 0"]
    reset = talk.last(c.ResetEnvironment)
    assert (reset.trajectory, reset.attempt, reset.version) == (0, 1, 0)
    assert talk.phase(1) is Phase.SCORED
    assert talk.trajectory(0).failures == 0
    assert talk.controller.state.open.keys() == {order.id for order in talk.orders[-4:]}


def test_engines_get_the_first_model_where_nothing_was_trained() -> None:
    talk = short()
    resume(talk)
    assert briefly(talk.answer(c.RestartEngine, 0)) == ["UpdateEngine 0"]
    assert talk.last(c.UpdateEngine).version == 0
    assert briefly(talk.answer(c.UpdateEngine, 0))[0] == "ResumeEngine 0"


def test_a_trained_version_is_published_before_any_engine_generates() -> None:
    talk = short()
    talk.finish(0, 1)
    talk.trained()
    assert briefly(resume(talk)) == [
        "RestartEngine 0",
        "RestartEngine 1",
        "RestartTrainer",
        "ResetEnvironment 2",
        "ResetEnvironment 3",
    ]
    assert talk.answer(c.RestartEngine, 0) == []
    assert talk.ready(2) == []
    (push,) = talk.tell(e.TrainerStarted(command_id=talk.last(c.RestartTrainer).id))
    assert isinstance(push, c.PushWeights)
    assert (push.version, push.broadcast) == (1, False)
    assert briefly(talk.pushed()) == ["UpdateEngine 0"]
    assert talk.last(c.UpdateEngine).version == 1
    assert briefly(talk.answer(c.UpdateEngine, 0)) == ["ResumeEngine 0", "GenerateTurn 2"]
    assert briefly(talk.answer(c.RestartEngine, 1)) == ["UpdateEngine 1"]


def test_a_step_under_way_is_done_again() -> None:
    talk = short()
    talk.finish(0, 1)
    batch = talk.last(c.TrainBatch)
    resume(talk)
    (again,) = talk.tell(e.TrainerStarted(command_id=talk.last(c.RestartTrainer).id))
    assert isinstance(again, c.TrainBatch)
    assert (again.version, again.trajectories) == (1, batch.trajectories)
    assert talk.tell(e.TrainingEnded(command_id=batch.id, version=1)) == []
    talk.trained()
    assert talk.controller.state.trained == 1


def test_a_version_that_is_made_while_the_one_before_is_published_follows_it() -> None:
    talk = short()
    talk.finish(0, 1)
    talk.trained()
    talk.finish(2, 3)
    for engine in (0, 1):
        talk.answer(c.SuspendEngine, engine)
    talk.pushed()
    for kind in (c.UpdateEngine, c.ResumeEngine):
        for engine in (0, 1):
            talk.answer(kind, engine)
    assert talk.last(c.TrainBatch).version == 2
    resume(talk)
    orders = talk.tell(e.TrainerStarted(command_id=talk.last(c.RestartTrainer).id))
    assert briefly(orders) == ["PushWeights", "TrainBatch"]
    talk.trained()
    assert talk.sync is SyncPhase.PUSHING
    talk.pushed()
    assert talk.controller.state.installed == 1
    assert talk.controller.state.sync.newest == 2


def test_a_trainer_on_time_shared_devices_has_no_steps_to_do_again() -> None:
    classes = (engines("local", 1, time_shared=True), engines("remote", 1))
    config = setup(
        "areal",
        {"recovery": {"checkpoint_every": 3}},
        tasks=(task(size=1, suited=(0, 1)),),
        classes=classes,
        steps=4,
    )
    talk = Dialogue(config)
    talk.finish(0)
    talk.answer(c.SuspendEngine, 0)
    talk.trained()
    for _ in range(2):
        resume(talk)
        orders = talk.tell(e.TrainerStarted(command_id=talk.last(c.RestartTrainer).id))
        # Where devices are time-shared, every step is saved.
        assert briefly(orders) == ["PushWeights"]


def test_slots_are_free_again() -> None:
    talk = short(slots=1)
    talk.ready(0)
    resume(talk)
    assert talk.controller.state.slots_used == 1
    assert briefly([talk.last(c.ResetEnvironment)]) == ["ResetEnvironment 0"]


def test_answers_from_before_change_nothing() -> None:
    talk = short()
    talk.ready(0)
    turn = talk.last(c.GenerateTurn)
    resume(talk)
    assert talk.tell(e.GenerationAborted(command_id=turn.id, output_tokens=3)) == []
    assert talk.lost(0, incarnation=0) == []
    assert talk.phase(0) is Phase.RESETTING


def test_a_reward_that_is_no_finite_number_is_asked_for_again() -> None:
    talk = short()
    for reward in (math.nan, math.inf):
        talk.finish(0, reward=reward) if reward is math.nan else talk.scored(0, reward)
        assert talk.phase(0) is Phase.SCORE_BACKOFF
        assert briefly(talk.fired(0)) == ["ScoreTrajectory 0"]
    talk.scored(0, 0.5)
    assert talk.trajectory(0).reward == 0.5
