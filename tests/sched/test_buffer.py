import pytest

from rollart.domain import commands as c
from rollart.domain.batch import groups_per_batch
from rollart.domain.errors import ScenarioError
from rollart.domain.task import Task
from rollart.domain.trajectory import End
from rollart.sched.parts.admission import Quota, TaskView
from tests.sched.dialogue import Dialogue, briefly
from tests.sched.setups import setup, task


def ends(talk: Dialogue) -> dict[int, End]:
    """How every trajectory ended so far."""
    return {order.trajectory: order.end for order in talk.all(c.EndTrajectory)}


def resets(talk: Dialogue) -> list[tuple[int, int]]:
    """Group and prompt of every trajectory that was started, in order."""
    return [(order.group, order.prompt) for order in talk.all(c.ResetEnvironment) if order.attempt == 0]


# Admission


@pytest.mark.parametrize(
    ("rule", "installed", "taken", "allowed"),
    [
        (Quota(base="installed", lookahead=0), 0, 0, 4),
        (Quota(base="installed", lookahead=0), 0, 3, 4),
        (Quota(base="installed", lookahead=1), 2, 0, 16),
        (Quota(base="taken", lookahead=0), 5, 1, 8),
        (Quota(base="taken", lookahead=2), 0, 1, 16),
        (Quota(base="taken", lookahead=0, redundant_groups=0.5), 0, 0, 6),
        (Quota(base="taken", lookahead=0, redundant_groups=0.0625), 0, 0, 4),
    ],
)
def test_quota(rule: Quota, installed: int, taken: int, allowed: int) -> None:
    view = TaskView(groups_per_batch=4, opened=0, installed=installed, taken=taken)
    assert rule.groups_allowed(view) == allowed
    half = TaskView(groups_per_batch=4, opened=3, installed=installed, taken=taken)
    assert rule.groups_allowed(half) == allowed - 3


def test_the_quota_is_per_task_and_the_tasks_take_turns() -> None:
    tasks = (task("slow", size=1, groups=1), task("fast", size=1, groups=3))
    talk = Dialogue(setup(tasks=tasks))
    assert [order.task for order in talk.all(c.ResetEnvironment)] == ["slow", "fast", "fast", "fast"]
    assert talk.finish(1, 2, 3) == []
    assert talk.finish(0)[-1] == talk.all(c.TrainBatch)[0]


def test_rollart_opens_one_batch_ahead_and_the_next_when_a_batch_is_taken() -> None:
    talk = Dialogue(setup("rollart", {"group": {"redundant_members": 0}}, tasks=(task(size=1, groups=2),)))
    assert len(talk.start) == 4
    orders = talk.finish(0, 1)
    assert briefly(orders) == [
        "EndTrajectory 0",
        "EndTrajectory 1",
        "TrainBatch",
        "ResetEnvironment 4",
        "ResetEnvironment 5",
    ]


# Groups


def test_the_first_g_of_g_plus_r_complete_the_group() -> None:
    talk = Dialogue(setup("one-off", {"group": {"redundant_members": 2}}, tasks=(task(size=2),)))
    assert len(talk.start) == 4
    talk.finish(3)
    assert ends(talk) == {}
    talk.finish(1)
    assert ends(talk) == {3: End.TRAINED, 1: End.TRAINED, 0: End.SURPLUS, 2: End.SURPLUS}
    assert talk.all(c.TrainBatch)[0].trajectories == (3, 1)


def test_redundant_members_absorb_failures() -> None:
    overrides = {"group": {"redundant_members": 1}, "recovery": {"max_attempts": 1}}
    talk = Dialogue(setup("one-off", overrides, tasks=(task(size=2),)))
    assert briefly(talk.failed(0)) == ["CloseEnvironment 0", "EndTrajectory 0"]
    assert "ResetEnvironment 3" in briefly(talk.failed(1))


def test_a_group_without_signal_is_filtered_and_replaced_at_once() -> None:
    talk = Dialogue(setup(overrides={"group": {"filter_equal_rewards": True}}, tasks=(task(size=2),)))
    orders = talk.finish(0, 1, reward=0.5)
    assert briefly(orders) == ["EndTrajectory 0", "EndTrajectory 1", "ResetEnvironment 2", "ResetEnvironment 3"]
    assert ends(talk) == {0: End.FILTERED, 1: End.FILTERED}
    assert resets(talk) == [(0, 0), (0, 0), (1, 1), (1, 1)]
    talk.finish(2, reward=0.0)
    talk.finish(3, reward=1.0)
    assert talk.all(c.TrainBatch)[0].trajectories == (2, 3)


@pytest.mark.parametrize(("surplus", "left"), [("stop", {1: End.SURPLUS}), ("keep", {})])
def test_what_a_batch_leaves_behind_is_stopped_or_kept(surplus: str, left: dict[int, End]) -> None:
    overrides = {"group": {"surplus": surplus}, "admission": {"redundant_groups": 1.0}}
    talk = Dialogue(setup(overrides=overrides, tasks=(task(size=1),)))
    assert len(talk.start) == 2
    talk.ready(1)
    talk.finish(0)
    assert ends(talk) == {0: End.TRAINED, **left}


# The batch


def test_the_oldest_groups_are_consumed_first_whatever_completed_first() -> None:
    overrides = {"admission": {"lookahead": 2}}
    talk = Dialogue(setup("areal", overrides, tasks=(task(size=1, groups=2),), steps=4))
    talk.finish(5, 4)
    assert talk.all(c.TrainBatch)[0].trajectories == (4, 5)
    talk.finish(3, 2, 1)
    update(talk)
    assert talk.all(c.TrainBatch)[1].trajectories == (1, 2)
    # Two groups of version 1 complete before those of version 0 that are left.
    talk.finish(6)
    talk.finish(0)
    update(talk)
    assert talk.all(c.TrainBatch)[2].trajectories == (0, 3)
    assert talk.all(c.TrainBatch)[2].start_versions == (0, 0)


def update(talk: Dialogue) -> None:
    """The training step ends, and the engines take the version in."""
    engines = range(2)
    talk.trained()
    for engine in engines:
        talk.answer(c.SuspendEngine, engine)
    talk.pushed()
    for engine in engines:
        talk.answer(c.UpdateEngine, engine)
    for engine in engines:
        talk.answer(c.ResumeEngine, engine)


def test_groups_that_grow_too_old_are_dropped_whole_and_their_quota_reopens() -> None:
    overrides = {"staleness": {"kind": "every_turn", "bound": 0}, "admission": {"base": "taken", "lookahead": 1}}
    talk = Dialogue(setup("sync+", {**overrides, "group": {"surplus": "keep"}}, tasks=(task(size=2),)))
    assert resets(talk) == [(0, 0), (0, 0), (1, 1), (1, 1)]
    talk.finish(2)
    talk.ready(3)
    talk.finish(0, 1)
    talk.trained()
    for engine in range(2):
        talk.answer(c.SuspendEngine, engine)
    talk.pushed()
    talk.answer(c.UpdateEngine, 0)
    orders = briefly(talk.answer(c.UpdateEngine, 1))
    assert orders == [
        # Two groups were opened at version 0 and are too old for version 1; the third was never started before.
        "EndTrajectory 2",
        "AbortGeneration 3",
        "CloseEnvironment 3",
        "EndTrajectory 3",
        "CloseEnvironment 4",
        "EndTrajectory 4",
        "CloseEnvironment 5",
        "EndTrajectory 5",
        "ResumeEngine 0",
        "ResumeEngine 1",
    ]
    assert ends(talk)[2] is End.STALE
    talk.answer(c.ResumeEngine, 0)
    assert briefly(talk.answer(c.ResumeEngine, 1)) == [f"ResetEnvironment {number}" for number in (6, 7, 8, 9)]
    assert {order.version for order in talk.all(c.ResetEnvironment)[-4:]} == {1}


def test_a_group_that_waits_for_slots_is_as_young_as_its_start() -> None:
    overrides = {"staleness": {"kind": "every_turn", "bound": 0}, "admission": {"base": "taken", "lookahead": 1}}
    tasks = (task(size=1),)
    talk = Dialogue(setup("sync+", {**overrides, "group": {"surplus": "keep"}}, tasks=tasks, slots=1))
    assert briefly(talk.start) == ["ResetEnvironment 0"]
    talk.finish(0)
    update(talk)
    assert ends(talk) == {0: End.TRAINED}
    (reset,) = talk.closed(0)
    assert isinstance(reset, c.ResetEnvironment)
    assert (reset.trajectory, reset.version) == (1, 1)


# Cutting a batch into groups


def share(name: str, part: float, size: int = 8) -> Task:
    """A task with a part of the batch."""
    return Task(name=name, share=part, group_size=size, max_turns=1)


def test_largest_remainder() -> None:
    thirds = [share("a", 1 / 3), share("b", 1 / 3), share("c", 1 / 3)]
    assert groups_per_batch(thirds, 80) == {"a": 4, "b": 3, "c": 3}
    assert groups_per_batch([share("a", 0.55), share("b", 0.45)], 80) == {"a": 6, "b": 4}
    assert groups_per_batch([share("a", 0.26), share("b", 0.74)], 80) == {"a": 3, "b": 7}


def test_different_group_sizes_need_whole_groups() -> None:
    assert groups_per_batch([share("a", 0.5, 8), share("b", 0.5, 4)], 16) == {"a": 1, "b": 2}
    with pytest.raises(ScenarioError, match=r"gives task a 1\.500 groups of 8"):
        groups_per_batch([share("a", 0.5, 8), share("b", 0.5, 4)], 24)
