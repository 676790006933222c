import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import InvariantError
from rollart.domain.trajectory import End
from rollart.sched import Controller
from tests.sched.dialogue import Dialogue, briefly
from tests.sched.setups import engines, setup, task


def short(preset: str, steps: int = 3) -> Dialogue:
    """Groups of one, one group in a batch, one engine."""
    return Dialogue(setup(preset, tasks=(task(size=1),), classes=(engines(count=1),), steps=steps))


def update(talk: Dialogue) -> list[c.Command]:
    """Everything between suspend and resume."""
    talk.answer(c.SuspendEngine, 0)
    talk.pushed()
    talk.answer(c.UpdateEngine, 0)
    return talk.answer(c.ResumeEngine, 0)


def test_update_first_rolls_the_next_batch_out_on_the_new_weights() -> None:
    talk = short("sync+")
    assert briefly(talk.finish(0)) == ["EndTrajectory 0", "TrainBatch"]
    assert briefly(talk.trained()) == ["SuspendEngine 0"]
    assert briefly(update(talk)) == ["ResetEnvironment 1"]
    assert talk.last(c.ResetEnvironment).version == 1
    talk.finish(1)
    batch = talk.last(c.TrainBatch)
    assert (batch.step, batch.version, batch.installed, batch.start_versions) == (1, 2, 1, (1,))


def test_batch_first_rolls_the_next_batch_out_beside_the_training() -> None:
    talk = short("one-off")
    assert briefly(talk.finish(0)) == ["EndTrajectory 0", "TrainBatch", "ResetEnvironment 1"]
    assert talk.last(c.ResetEnvironment).version == 0
    assert talk.trained() == []
    assert briefly(talk.finish(1)) == ["EndTrajectory 1", "SuspendEngine 0"]
    assert briefly(update(talk)) == ["TrainBatch", "ResetEnvironment 2"]
    batch = talk.last(c.TrainBatch)
    assert (batch.step, batch.version, batch.installed, batch.start_versions) == (1, 2, 0, (0,))
    assert talk.last(c.ResetEnvironment).version == 1


def test_a_batch_that_is_complete_before_the_training_waits_for_its_end() -> None:
    talk = short("one-off")
    talk.finish(0)
    assert talk.finish(1) == []
    assert briefly(talk.trained()) == ["EndTrajectory 1", "SuspendEngine 0"]


def test_the_last_step_stops_the_run_and_what_is_under_way_is_unfinished() -> None:
    talk = short("one-off", steps=1)
    talk.finish(0)
    talk.ready(1)
    assert talk.trained() == [
        c.AbortGeneration(
            id=9, target=talk.last(c.GenerateTurn, trajectory=1).id, trajectory=1, engine=0, incarnation=0
        ),
        c.CloseEnvironment(id=10, trajectory=1),
        c.EndTrajectory(id=11, trajectory=1, end=End.UNFINISHED),
        c.StopRun(id=12),
    ]
    assert talk.controller.state.trajectories == {}
    assert talk.generated(1) == []
    assert talk.tell(e.RunStarted()) == []


def test_a_training_step_is_counted_once() -> None:
    talk = short("sync+")
    talk.finish(0)
    order = talk.last(c.TrainBatch)
    talk.trained()
    assert talk.tell(e.TrainingEnded(command_id=order.id, version=7)) == []
    assert talk.controller.state.trained == 1


def test_a_batch_waits_for_every_task() -> None:
    talk = Dialogue(setup(tasks=(task("a", size=1), task("b", size=1, groups=2))))
    talk.finish(0, 1)
    assert talk.all(c.TrainBatch) == []
    talk.finish(2)
    assert talk.all(c.TrainBatch)[0].trajectories == (0, 1, 2)


@pytest.mark.parametrize(
    ("preset", "lookahead", "staleness"),
    [
        ("one-off", 0, [0, 0, 0, 0, 0, 0]),
        ("one-off", 1, [0, 0, 1, 1, 1, 1]),
        ("one-off", 2, [0, 0, 1, 2, 2, 2]),
        ("areal", 0, [0, 0, 0, 0, 0, 0]),
        ("areal", 1, [0, 1, 1, 1, 1, 1]),
        ("areal", 2, [0, 1, 2, 2, 2, 2]),
    ],
)
def test_in_order_the_quota_alone_keeps_the_staleness_at_the_lookahead(
    preset: str, lookahead: int, staleness: list[int]
) -> None:
    """One-off counts batches taken, AReaL versions installed; neither evicts anything."""
    overrides = {"admission": {"lookahead": lookahead}, "group": {"surplus": "keep"}}
    talk = Dialogue(setup(preset, overrides, tasks=(task(size=1),), classes=(engines(count=1),), steps=7))
    for number in range(6):
        talk.finish(number)
        if preset == "one-off" and number > 0:
            update(talk)
        talk.trained()
        if preset == "areal":
            update(talk)
    batches = talk.all(c.TrainBatch)
    assert [batch.installed - batch.start_versions[0] for batch in batches[:6]] == staleness


def test_an_event_of_no_known_kind_is_a_bug() -> None:
    class Rumour(e.Event, frozen=True, kw_only=True, gc=False, tag=True):
        """No event of the protocol."""

    with pytest.raises(InvariantError, match="no handler for the event Rumour"):
        Controller(setup()).handle(Rumour(), 0.0)
