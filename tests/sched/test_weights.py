import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.plan import Role
from rollart.domain.trajectory import End
from rollart.sched.state import EngineStatus, Phase, SyncPhase
from tests.sched.dialogue import Dialogue, briefly, turn_generated
from tests.sched.setups import Overrides, engines, setup, task

LOOKAHEAD = {"admission": {"base": "taken", "lookahead": 2}, "group": {"surplus": "keep", "redundant_members": 0}}


def after_a_step(preset: str, overrides: Overrides | None = None, **fields: int | bool) -> Dialogue:
    """Two engines, groups of one, more than a batch under way; the first training step has just ended."""
    talk = Dialogue(
        setup(
            preset,
            {**LOOKAHEAD, **(overrides or {})},
            tasks=(task(size=1, groups=1),),
            classes=(engines(count=2, **fields),),
            steps=5,
        )
    )
    talk.finish(0)
    if fields.get("time_shared"):
        talk.answer(c.SuspendEngine, 0)
        talk.answer(c.SuspendEngine, 1)
    return talk


def status(talk: Dialogue, engine: int) -> EngineStatus:
    """What the controller knows of an engine."""
    return talk.controller.state.engines[engine].status


# The phases


def test_blocking_broadcast() -> None:
    talk = after_a_step("sync+")
    assert talk.trained() == [
        c.SuspendEngine(id=10, engine=0, incarnation=0, release_memory=False),
        c.SuspendEngine(id=11, engine=1, incarnation=0, release_memory=False),
    ]
    assert talk.answer(c.SuspendEngine, 1) == []
    assert talk.answer(c.SuspendEngine, 0) == [c.PushWeights(id=12, version=1, broadcast=True)]
    source = c.WeightSource.BROADCAST
    assert talk.pushed() == [
        c.UpdateEngine(id=13, engine=0, incarnation=0, version=1, source=source),
        c.UpdateEngine(id=14, engine=1, incarnation=0, version=1, source=source),
    ]
    assert talk.answer(c.UpdateEngine, 0) == []
    assert talk.controller.state.installed == 0
    assert talk.answer(c.UpdateEngine, 1) == [
        c.ResumeEngine(id=15, engine=0, incarnation=0),
        c.ResumeEngine(id=16, engine=1, incarnation=0),
    ]
    assert talk.controller.state.installed == 1
    assert talk.answer(c.ResumeEngine, 0) == []
    assert talk.answer(c.ResumeEngine, 1) == []
    assert talk.sync is SyncPhase.IDLE


def test_through_the_store_without_prefetch_the_push_is_exposed() -> None:
    talk = after_a_step("sync+", {"sync": {"transport": "store"}})
    assert briefly(talk.trained()) == ["SuspendEngine 0", "SuspendEngine 1"]
    talk.answer(c.SuspendEngine, 0)
    assert talk.answer(c.SuspendEngine, 1) == [c.PushWeights(id=12, version=1, broadcast=False)]
    talk.pushed()
    assert {order.source for order in talk.all(c.UpdateEngine)} == {c.WeightSource.STORE}


def test_with_prefetch_only_the_load_is_exposed() -> None:
    talk = after_a_step("rollart")
    assert briefly(talk.trained()) == ["PushWeights", "PullWeights 0", "PullWeights 1"]
    talk.pushed()
    talk.answer(c.PullWeights, 0)
    assert talk.sync is SyncPhase.FETCHING
    assert talk.answer(c.PullWeights, 1) == []
    assert talk.sync is SyncPhase.FETCHED
    # The batch is taken first, then the engines are updated, then the trainer gets the batch.
    assert briefly(talk.finish(1)) == ["EndTrajectory 1", "SuspendEngine 0", "SuspendEngine 1"]
    talk.answer(c.SuspendEngine, 0)
    assert talk.answer(c.SuspendEngine, 1) == [
        c.UpdateEngine(id=20, engine=0, incarnation=0, version=1, source=c.WeightSource.HOST),
        c.UpdateEngine(id=21, engine=1, incarnation=0, version=1, source=c.WeightSource.HOST),
    ]
    talk.answer(c.UpdateEngine, 0)
    talk.answer(c.UpdateEngine, 1)
    talk.answer(c.ResumeEngine, 0)
    assert briefly(talk.answer(c.ResumeEngine, 1)) == ["TrainBatch", "ResetEnvironment 4"]
    batch = talk.all(c.TrainBatch)[1]
    assert (batch.version, batch.installed, batch.start_versions) == (2, 0, (0,))


def test_a_batch_that_is_early_waits_for_the_fetch() -> None:
    talk = after_a_step("rollart")
    talk.trained()
    talk.pushed()
    talk.answer(c.PullWeights, 1)
    assert briefly(talk.finish(1)) == ["EndTrajectory 1"]
    assert briefly(talk.answer(c.PullWeights, 0)) == ["SuspendEngine 0", "SuspendEngine 1"]


def test_without_waiting_the_early_batch_is_trained_and_the_version_installed_later() -> None:
    talk = after_a_step("rollart", {"sync": {"wait_for_fetch": False}})
    talk.trained()
    assert briefly(talk.finish(1)) == ["EndTrajectory 1", "TrainBatch", "ResetEnvironment 4"]
    # The next version is there before the first has arrived: the first is installed all the same, then the next.
    assert talk.trained() == []
    talk.pushed()
    talk.answer(c.PullWeights, 0)
    assert talk.answer(c.PullWeights, 1) == []
    assert briefly(talk.finish(2)) == ["EndTrajectory 2", "SuspendEngine 0", "SuspendEngine 1"]
    for order in (c.SuspendEngine, c.UpdateEngine):
        talk.answer(order, 0)
        talk.answer(order, 1)
    assert {order.version for order in talk.all(c.UpdateEngine)} == {1}
    talk.answer(c.ResumeEngine, 0)
    followed = talk.answer(c.ResumeEngine, 1)
    assert c.PushWeights(id=followed[0].id, version=2, broadcast=False) in followed
    assert talk.all(c.TrainBatch)[-1].installed == 0


def test_update_first_takes_no_batch_while_it_fetches() -> None:
    talk = after_a_step("rollart", {"sync": {"order": "update_first"}})
    talk.trained()
    assert talk.finish(1) == []
    talk.pushed()
    for kind in (c.PullWeights, c.SuspendEngine, c.UpdateEngine, c.ResumeEngine):
        talk.answer(kind, 0)
        orders = talk.answer(kind, 1)
    assert briefly(orders) == ["EndTrajectory 1", "TrainBatch", "ResetEnvironment 4"]
    batch = talk.all(c.TrainBatch)[1]
    assert (batch.installed, batch.start_versions) == (1, (0,))


def test_an_in_flight_swap_suspends_nobody() -> None:
    talk = after_a_step("sync+", {"sync": {"suspend": False}})
    assert briefly(talk.trained()) == ["PushWeights"]
    assert briefly(talk.pushed()) == ["UpdateEngine 0", "UpdateEngine 1"]
    talk.answer(c.UpdateEngine, 0)
    assert talk.answer(c.UpdateEngine, 1) == []
    assert (talk.controller.state.installed, talk.sync) == (1, SyncPhase.IDLE)


# Interruption


def interrupted() -> Dialogue:
    """Trajectory 1 (on engine 1) and 2 (on engine 0) were generating when AReaL's update began."""
    talk = after_a_step("areal")
    talk.ready(1, prompt=100, shared=50)
    talk.ready(2, prompt=200, shared=50)
    talk.trained()
    return talk


def test_an_interrupted_turn_is_sent_again_to_its_engine_with_the_tokens_made() -> None:
    talk = interrupted()
    aborts = talk.all(c.AbortGeneration)
    assert [(order.trajectory, order.engine) for order in aborts] == [(1, 1), (2, 0)]
    assert talk.phase(1) is Phase.HELD
    late = talk.last(c.GenerateTurn, trajectory=1).id
    assert talk.tell(e.GenerationAborted(command_id=aborts[0].id, output_tokens=30)) == []
    assert talk.generated(1, 500) == [], f"a late answer to turn {late}"
    for engine in (0, 1):
        talk.answer(c.SuspendEngine, engine)
    talk.pushed()
    for engine in (0, 1):
        talk.answer(c.UpdateEngine, engine)
    talk.answer(c.ResumeEngine, 0)
    again = talk.answer(c.ResumeEngine, 1)[0]
    assert isinstance(again, c.GenerateTurn)
    assert (again.trajectory, again.engine, again.turn) == (1, 1, 0)
    assert (again.context_tokens, again.reusable_tokens, again.partial_tokens) == (130, 130, 30)
    assert again.max_tokens == 870
    # The answer to the second abort comes late; the turn goes on then.
    (other,) = talk.tell(e.GenerationAborted(command_id=aborts[1].id, output_tokens=0))
    assert isinstance(other, c.GenerateTurn)
    assert (other.trajectory, other.engine, other.context_tokens, other.partial_tokens) == (2, 0, 200, 0)


def test_an_interrupted_turn_that_filled_the_context_ends_the_episode() -> None:
    talk = interrupted()
    orders = talk.tell(e.GenerationAborted(command_id=talk.all(c.AbortGeneration)[0].id, output_tokens=900))
    assert briefly(orders) == ["CloseEnvironment 1", "ScoreTrajectory 1"]


def test_an_abort_that_its_engine_no_longer_answers_is_over_with_the_engine() -> None:
    talk = interrupted()
    orders = talk.lost(1)
    assert briefly(orders)[:2] == ["RestartEngine 1", "GenerateTurn 1"]
    turn = talk.last(c.GenerateTurn, trajectory=1)
    assert (turn.engine, turn.incarnation, turn.partial_tokens) == (0, 0, 0)


# Engines that die


def test_a_lost_engines_turns_go_elsewhere_with_the_tokens_saved() -> None:
    talk = after_a_step("sync+")
    talk.ready(1)
    turn = talk.last(c.GenerateTurn, trajectory=1)
    assert turn.engine == 0
    restart, again = talk.lost(0, saved={turn.id: 25})
    assert restart == c.RestartEngine(id=11, engine=0, incarnation=1)
    assert isinstance(again, c.GenerateTurn)
    assert (again.engine, again.context_tokens, again.reusable_tokens, again.partial_tokens) == (1, 125, 0, 25)
    assert talk.tell(turn_generated(turn.id)) == []


def test_without_migration_the_turn_starts_over() -> None:
    talk = after_a_step("sync+", {"recovery": {"migrate": False}})
    talk.ready(1)
    again = talk.lost(0, saved={talk.last(c.GenerateTurn).id: 25})[1]
    assert isinstance(again, c.GenerateTurn)
    assert (again.context_tokens, again.partial_tokens) == (100, 0)


def test_a_turn_that_was_on_its_way_to_a_dead_engine_is_lost_with_it() -> None:
    talk = after_a_step("sync+")
    talk.ready(1)
    turn = talk.last(c.GenerateTurn)
    assert briefly(talk.lost(0)) == ["RestartEngine 0", "GenerateTurn 1"]
    assert talk.lost(0, incarnation=0, saved={turn.id: 0}) == []


def test_a_judgement_that_died_with_its_engine_is_no_turn() -> None:
    talk = after_a_step("sync+")
    talk.ready(1)
    talk.generated(1)
    talk.stepped(1, done=True)
    score = talk.last(c.ScoreTrajectory, trajectory=1)
    assert briefly(talk.lost(0, saved={score.id: 3})) == ["RestartEngine 0"]
    assert talk.phase(1) is Phase.SCORING


def test_a_newcomer_catches_up_and_takes_the_waiting_turns() -> None:
    talk = Dialogue(setup("sync+", LOOKAHEAD, tasks=(task(size=1),), classes=(engines(count=1),)))
    talk.ready(0)
    assert briefly(talk.lost(0)) == ["RestartEngine 0"]
    assert talk.phase(0) is Phase.HELD
    update = c.UpdateEngine(id=5, engine=0, incarnation=1, version=0, source=c.WeightSource.STORE)
    assert talk.answer(c.RestartEngine, 0) == [update]
    assert status(talk, 0) is EngineStatus.CATCHING_UP
    assert briefly(talk.answer(c.UpdateEngine, 0)) == ["ResumeEngine 0", "GenerateTurn 0"]
    assert talk.last(c.GenerateTurn).incarnation == 1
    assert status(talk, 0) is EngineStatus.UP


def test_a_dead_incarnations_late_answers_do_not_welcome_the_next() -> None:
    talk = after_a_step("sync+")
    talk.lost(0)
    restart = talk.last(c.RestartEngine)
    talk.answer(c.RestartEngine, 0)
    update = talk.last(c.UpdateEngine)
    assert briefly(talk.lost(0, incarnation=1)) == ["RestartEngine 0"]
    assert talk.tell(e.EngineUpdated(command_id=update.id, version=0)) == []
    assert talk.tell(e.EngineStarted(command_id=restart.id)) == []
    assert status(talk, 0) is EngineStatus.JOINING


def test_an_engine_that_dies_while_it_restarts_is_restarted_again() -> None:
    talk = after_a_step("sync+")
    talk.lost(0)
    first = talk.last(c.RestartEngine)
    assert talk.lost(0, incarnation=1) == [c.RestartEngine(id=first.id + 1, engine=0, incarnation=2)]
    assert talk.tell(e.EngineStarted(command_id=first.id)) == []
    assert briefly(talk.answer(c.RestartEngine, 0)) == ["UpdateEngine 0"]
    assert talk.last(c.UpdateEngine).incarnation == 2


def test_a_newcomer_waits_while_the_others_are_updated() -> None:
    talk = after_a_step("sync+")
    talk.lost(0)
    talk.trained()
    assert talk.answer(c.RestartEngine, 0) == []
    assert briefly(talk.answer(c.SuspendEngine, 1)) == ["PushWeights"]
    assert briefly(talk.pushed()) == ["UpdateEngine 1"]
    assert briefly(talk.answer(c.UpdateEngine, 1)) == ["ResumeEngine 1"]
    assert talk.answer(c.ResumeEngine, 1)[0] == c.UpdateEngine(
        id=15, engine=0, incarnation=1, version=1, source=c.WeightSource.STORE
    )


def test_a_newcomer_that_caught_up_with_an_old_version_catches_up_again() -> None:
    talk = after_a_step("sync+", {"sync": {"suspend": False}})
    talk.lost(0)
    talk.answer(c.RestartEngine, 0)
    old = talk.last(c.UpdateEngine, engine=0)
    talk.trained()
    talk.pushed()
    talk.answer(c.UpdateEngine, 1)
    assert talk.controller.state.installed == 1
    (again,) = talk.tell(e.EngineUpdated(command_id=old.id, version=0))
    assert isinstance(again, c.UpdateEngine)
    assert (again.engine, again.version) == (0, 1)


def test_after_too_many_losses_an_engine_is_removed() -> None:
    talk = after_a_step("sync+", {"recovery": {"max_engine_restarts": 1}})
    assert briefly(talk.lost(0)) == ["RestartEngine 0"]
    talk.answer(c.RestartEngine, 0)
    assert talk.lost(0, incarnation=1) == []
    assert status(talk, 0) is EngineStatus.REMOVED
    assert talk.lost(0, incarnation=2) == []


PHASES = {
    SyncPhase.FETCHING: 0,
    SyncPhase.SUSPENDING: 1,
    SyncPhase.UPDATING: 2,
    SyncPhase.RESUMING: 3,
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("answered_first", [True, False])
def test_an_engine_that_dies_in_any_phase_holds_up_nobody(phase: SyncPhase, answered_first: bool) -> None:
    talk = after_a_step("rollart", {"sync": {"order": "update_first"}})
    kinds = (c.PullWeights, c.SuspendEngine, c.UpdateEngine, c.ResumeEngine)
    talk.trained()
    talk.pushed()
    for kind in kinds[: PHASES[phase]]:
        talk.answer(kind, 0)
        talk.answer(kind, 1)
    assert talk.sync is phase
    dying = kinds[PHASES[phase]]
    if answered_first:
        talk.answer(dying, 0)
        talk.lost(1)
    else:
        talk.lost(1)
        talk.answer(dying, 0)
    for kind in kinds[PHASES[phase] + 1 :]:
        talk.answer(kind, 0)
    assert (talk.controller.state.installed, talk.sync) == (1, SyncPhase.IDLE)
    assert status(talk, 1) is EngineStatus.JOINING


def test_an_update_without_any_engine_left_still_installs() -> None:
    talk = after_a_step("sync+")
    talk.trained()
    talk.lost(0)
    assert briefly(talk.lost(1)) == ["RestartEngine 1", "PushWeights"]
    talk.pushed()
    assert (talk.controller.state.installed, talk.sync) == (1, SyncPhase.IDLE)
    assert briefly(talk.answer(c.RestartEngine, 0)) == ["UpdateEngine 0"]
    assert talk.last(c.UpdateEngine).version == 1


# Time-shared devices


def test_time_shared_engines_give_their_memory_back_before_training() -> None:
    talk = Dialogue(setup(tasks=(task(size=1),), classes=(engines(count=1, time_shared=True),)))
    assert talk.finish(0) == [
        c.EndTrajectory(id=5, trajectory=0, end=End.TRAINED),
        c.SuspendEngine(id=6, engine=0, incarnation=0, release_memory=True),
    ]
    assert briefly(talk.answer(c.SuspendEngine, 0)) == ["TrainBatch"]
    # It is suspended already: the push follows at once.
    assert briefly(talk.trained()) == ["PushWeights"]
    assert briefly(talk.pushed()) == ["UpdateEngine 0"]
    assert briefly(talk.answer(c.UpdateEngine, 0)) == ["ResumeEngine 0"]
    assert briefly(talk.answer(c.ResumeEngine, 0)) == ["ResetEnvironment 1"]


def test_time_shared_engines_are_updated_before_the_next_batch_under_every_order() -> None:
    talk = after_a_step("one-off", time_shared=True)
    assert briefly(talk.trained()) == ["PushWeights"]


def test_a_time_shared_newcomer_waits_for_the_trainer_without_weights() -> None:
    talk = after_a_step("sync+", time_shared=True)
    talk.lost(0)
    assert talk.answer(c.RestartEngine, 0) == []
    talk.trained()
    talk.pushed()
    assert briefly(talk.answer(c.UpdateEngine, 1)) == []
    assert briefly(talk.answer(c.UpdateEngine, 0)) == ["ResumeEngine 1", "ResumeEngine 0"]


def test_a_time_shared_newcomer_that_was_catching_up_gives_its_memory_back() -> None:
    talk = Dialogue(setup(tasks=(task(size=1),), classes=(engines(count=2, time_shared=True),)))
    talk.lost(1)
    talk.answer(c.RestartEngine, 1)
    assert briefly(talk.finish(0)) == ["EndTrajectory 0", "SuspendEngine 0", "SuspendEngine 1"]
    assert talk.tell(e.EngineUpdated(command_id=talk.last(c.UpdateEngine).id, version=0)) == []
    talk.answer(c.SuspendEngine, 0)
    assert briefly(talk.answer(c.SuspendEngine, 1)) == ["TrainBatch"]


# Judges


def test_judges_take_no_part_in_updates_and_come_back_without_weights() -> None:
    classes = (engines(count=1), engines("judge", 1, role=Role.JUDGE))
    talk = Dialogue(setup(tasks=(task(size=1),), classes=classes))
    talk.finish(0)
    assert briefly(talk.trained()) == ["SuspendEngine 0"]
    assert briefly(talk.lost(1)) == ["RestartEngine 1"]
    assert briefly(talk.answer(c.RestartEngine, 1)) == ["ResumeEngine 1"]
