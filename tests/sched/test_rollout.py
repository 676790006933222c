import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause, End
from rollart.sched.state import Phase
from tests.sched.dialogue import Dialogue, briefly, turn_generated
from tests.sched.setups import Overrides, engines, setup, task


def one(max_turns: int = 3, overrides: Overrides | None = None, **fields: int) -> Dialogue:
    """A batch of one trajectory on one engine."""
    tasks = (task(size=1, max_turns=max_turns),)
    return Dialogue(setup("sync+", overrides, tasks=tasks, classes=(engines(count=1),), **fields))


def test_the_life_of_a_trajectory_command_by_command() -> None:
    talk = one()
    reset = c.ResetEnvironment(
        id=0, trajectory=0, task="maze", prompt=0, group=0, member=0, attempt=0, version=0, timeout_s=600.0
    )
    assert talk.start == [reset]
    first = c.GenerateTurn(
        id=1,
        trajectory=0,
        group=0,
        turn=0,
        engine=0,
        incarnation=0,
        prefill_engine=None,
        context_tokens=100,
        reusable_tokens=0,
        shared_tokens=50,
        partial_tokens=0,
        max_tokens=900,
    )
    assert talk.ready(0, prompt=100, shared=50) == [first]
    assert talk.generated(0, 10) == [c.StepEnvironment(id=2, trajectory=0, turn=0, timeout_s=600.0)]
    second = c.GenerateTurn(
        id=3,
        trajectory=0,
        group=0,
        turn=1,
        engine=0,
        incarnation=0,
        prefill_engine=None,
        context_tokens=115,
        reusable_tokens=110,
        shared_tokens=50,
        partial_tokens=0,
        max_tokens=885,
    )
    assert talk.stepped(0, 5) == [second]
    assert talk.generated(0, 20) == [c.StepEnvironment(id=4, trajectory=0, turn=1, timeout_s=600.0)]
    assert talk.stepped(0, 7, done=True) == [
        c.CloseEnvironment(id=5, trajectory=0),
        c.ScoreTrajectory(id=6, trajectory=0, attempt=0, timeout_s=120.0),
    ]
    assert talk.scored(0) == [
        c.EndTrajectory(id=7, trajectory=0, end=End.TRAINED),
        c.TrainBatch(
            id=8, step=0, version=1, installed=0, trajectories=(0,), start_versions=(0,), context_tokens=(142,)
        ),
    ]


def test_compaction_keeps_a_prefix_and_the_trainer_still_gets_all_tokens() -> None:
    talk = one()
    talk.ready(0, prompt=100, shared=50)
    talk.generated(0, 30)
    (turn,) = talk.stepped(0, 5, kept=40)
    assert isinstance(turn, c.GenerateTurn)
    assert (turn.context_tokens, turn.reusable_tokens, turn.shared_tokens) == (45, 40, 40)
    assert talk.trajectory(0).total_tokens == 135


def test_a_compaction_that_keeps_more_than_there_is_keeps_all() -> None:
    talk = one()
    talk.ready(0, prompt=100)
    talk.generated(0, 30)
    (turn,) = talk.stepped(0, 5, kept=500)
    assert isinstance(turn, c.GenerateTurn)
    assert (turn.context_tokens, turn.reusable_tokens) == (135, 130)


def test_a_turn_cut_at_the_context_limit_ends_the_episode_without_a_step() -> None:
    talk = one(context_limit=120)
    talk.ready(0, prompt=100)
    assert talk.last(c.GenerateTurn).max_tokens == 20
    assert briefly(talk.generated(0, 20, truncated=True)) == ["CloseEnvironment 0", "ScoreTrajectory 0"]
    assert talk.trajectory(0).truncated


@pytest.mark.parametrize(("observation", "on"), [(9, True), (10, False), (11, False)])
def test_an_observation_that_fills_the_context_ends_the_episode(observation: int, on: bool) -> None:
    talk = one(context_limit=120)
    talk.ready(0, prompt=100)
    talk.generated(0, 10)
    orders = briefly(talk.stepped(0, observation))
    assert orders == (["GenerateTurn 0"] if on else ["CloseEnvironment 0", "ScoreTrajectory 0"])
    assert talk.trajectory(0).truncated is not on


def test_a_prompt_that_fills_the_context_is_scored_without_a_turn() -> None:
    talk = one(context_limit=120)
    assert briefly(talk.ready(0, prompt=120)) == ["CloseEnvironment 0", "ScoreTrajectory 0"]


@pytest.mark.parametrize(("done", "truncated"), [(False, True), (True, False)])
def test_the_last_turn_allowed_ends_the_episode(done: bool, truncated: bool) -> None:
    talk = one(max_turns=1)
    talk.ready(0)
    talk.generated(0)
    assert briefly(talk.stepped(0, done=done)) == ["CloseEnvironment 0", "ScoreTrajectory 0"]
    assert talk.trajectory(0).truncated is truncated


def test_a_failed_environment_is_closed_and_reset_after_the_backoff() -> None:
    talk = one()
    talk.ready(0)
    talk.generated(0)
    assert talk.failed(0) == [c.CloseEnvironment(id=3, trajectory=0), c.SetTimer(id=4, delay_s=1.0)]
    assert talk.phase(0) is Phase.BACKOFF
    (reset,) = talk.fired(0)
    assert isinstance(reset, c.ResetEnvironment)
    assert (reset.trajectory, reset.attempt, reset.member) == (0, 1, 0)
    assert talk.failed(0) == [c.CloseEnvironment(id=6, trajectory=0), c.SetTimer(id=7, delay_s=2.0)]
    talk.fired(0)
    (turn,) = talk.ready(0, prompt=100)
    assert isinstance(turn, c.GenerateTurn)
    assert (turn.turn, turn.context_tokens, turn.reusable_tokens) == (0, 100, 0)


def test_after_the_last_attempt_a_new_member_takes_the_place() -> None:
    talk = one(overrides={"recovery": {"max_attempts": 2}})
    talk.failed(0)
    talk.fired(0)
    orders = talk.failed(0)
    assert briefly(orders) == ["CloseEnvironment 0", "EndTrajectory 0", "ResetEnvironment 1"]
    assert orders[1] == c.EndTrajectory(id=5, trajectory=0, end=End.FAILED)
    reset = talk.last(c.ResetEnvironment)
    assert (reset.group, reset.prompt, reset.member, reset.attempt) == (0, 0, 1, 0)


def test_a_group_of_which_too_many_members_failed_is_replaced_by_another_prompt() -> None:
    talk = one(overrides={"recovery": {"max_attempts": 1}})
    talk.failed(0)
    assert briefly(talk.failed(1)) == ["CloseEnvironment 1", "EndTrajectory 1", "ResetEnvironment 2"]
    assert talk.last(c.ResetEnvironment).prompt == 1


def test_a_reward_is_asked_for_again_after_the_backoff() -> None:
    talk = one()
    talk.ready(0)
    talk.generated(0)
    talk.stepped(0, done=True)
    failed = e.RewardFailed(command_id=talk.last(c.ScoreTrajectory).id, cause=Cause.TIMEOUT)
    assert talk.tell(failed) == [c.SetTimer(id=5, delay_s=1.0)]
    assert talk.fired(0) == [c.ScoreTrajectory(id=6, trajectory=0, attempt=1, timeout_s=120.0)]
    assert talk.tell(failed) == []
    assert briefly(talk.scored(0)) == ["EndTrajectory 0", "TrainBatch"]


def test_late_answers_change_nothing() -> None:
    talk = one()
    talk.ready(0)
    turn = talk.last(c.GenerateTurn).id
    talk.generated(0)
    before = talk.controller.snapshot()
    assert talk.tell(turn_generated(turn)) == []
    assert talk.tell(e.EnvironmentFailed(command_id=0, cause=Cause.ERROR)) == []
    assert talk.tell(e.TimerFired(command_id=99)) == []
    assert talk.controller.snapshot() == before


def test_slots_are_respected_and_retries_go_first() -> None:
    talk = Dialogue(setup(tasks=(task(size=4),), slots=2))
    assert briefly(talk.start) == ["ResetEnvironment 0", "ResetEnvironment 1"]
    talk.failed(0)
    assert briefly(talk.closed(0)) == ["ResetEnvironment 2"]
    assert talk.fired(0) == []
    talk.ready(1)
    talk.generated(1)
    talk.stepped(1, done=True)
    assert briefly(talk.closed(1)) == ["ResetEnvironment 0"]
    assert talk.controller.state.slots_used == 2


def test_in_lockstep_nobody_acts_before_all_have_generated() -> None:
    talk = Dialogue(setup("sync", tasks=(task(size=2),)))
    assert talk.ready(0) == []
    assert briefly(talk.ready(1)) == ["GenerateTurn 0", "GenerateTurn 1"]
    assert talk.generated(1) == []
    assert briefly(talk.generated(0)) == ["StepEnvironment 1", "StepEnvironment 0"]
    talk.stepped(0)
    assert briefly(talk.stepped(1, done=True)) == ["CloseEnvironment 1", "GenerateTurn 0"]
    talk.generated(0)
    assert briefly(talk.stepped(0, done=True)) == ["CloseEnvironment 0", "ScoreTrajectory 1", "ScoreTrajectory 0"]


def test_a_barrier_does_not_wait_for_a_retry_whose_slot_its_members_hold() -> None:
    talk = Dialogue(setup("sync", tasks=(task(size=3),), slots=2))
    talk.failed(0)
    assert briefly(talk.closed(0)) == ["ResetEnvironment 2"]
    talk.ready(1)
    assert talk.ready(2) == []
    assert briefly(talk.fired(0)) == ["GenerateTurn 1", "GenerateTurn 2"]
    talk.generated(1)
    talk.generated(2)
    talk.stepped(1, done=True)
    assert briefly(talk.closed(1)) == ["ResetEnvironment 0"]


def test_ending_a_turn_aborts_it_and_cancels_what_waits() -> None:
    talk = Dialogue(setup("rollart", {"group": {"redundant_members": 2}}, tasks=(task(size=1),)))
    talk.ready(1)
    talk.failed(2)
    orders = talk.finish(0)
    target = talk.last(c.GenerateTurn, trajectory=1).id
    timer = talk.last(c.SetTimer).id
    # The first of three completes the group: the other two are surplus, wherever they are.
    assert [type(order) for order in orders[:5]] == [
        c.AbortGeneration,
        c.CloseEnvironment,
        c.EndTrajectory,
        c.CancelTimer,
        c.EndTrajectory,
    ]
    assert talk.last(c.AbortGeneration).target == target
    assert talk.last(c.CancelTimer).target == timer
    assert {order.trajectory: order.end for order in talk.all(c.EndTrajectory)} == {
        0: End.TRAINED,
        1: End.SURPLUS,
        2: End.SURPLUS,
    }
