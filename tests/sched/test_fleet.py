from collections.abc import Sequence

import pytest

from rollart.domain.plan import Role
from rollart.sched import EngineClass, TaskConfig
from rollart.sched.fleet import Fleet
from rollart.sched.parts import build
from rollart.sched.state import ControllerState, Engine, EngineStatus, TaskState, Trajectory
from tests.sched.setups import engines, setup, task


def fleet(
    classes: Sequence[EngineClass], tasks: Sequence[TaskConfig] | None = None, router: str = "least_loaded"
) -> Fleet:
    """A fleet of its own, all engines up."""
    config = setup(
        "sync+", {"router": {"kind": router, "sticky": True}}, classes=classes, tasks=tasks or (task(size=1),)
    )
    state = ControllerState(
        tasks=[TaskState() for _ in config.tasks], engines=[Engine() for _ in config.engine_classes]
    )
    return Fleet(config, state, build(config.policy))


def newcomer(number: int = 0, task_index: int = 0) -> Trajectory:
    """A trajectory without an engine."""
    return Trajectory(id=number, task=task_index, group=0, member=0)


def down(crew: Fleet, index: int) -> None:
    """The engine is lost; its next incarnation restarts."""
    engine = crew.engines[index]
    engine.status, engine.load = EngineStatus.JOINING, 0
    engine.incarnation += 1
    crew.changed(index)


def up(crew: Fleet, index: int) -> None:
    """It is back."""
    crew.engines[index].status = EngineStatus.UP
    crew.changed(index)


def bound(crew: Fleet, count: int, task_index: int = 0) -> list[int]:
    """The engines that new trajectories get."""
    got = []
    for number in range(count):
        trajectory = newcomer(number, task_index)
        assert crew.bind(trajectory)
        got.append(trajectory.engine)
    return got


def test_the_least_loaded_engine_serves_and_the_lowest_index_breaks_ties() -> None:
    crew = fleet((engines(count=3),))
    assert bound(crew, 5) == [0, 1, 2, 0, 1]
    assert [engine.load for engine in crew.engines] == [2, 2, 1]


def test_load_is_shared_in_proportion_to_speed() -> None:
    classes = (engines("slow", 1, weight=1.0), engines("fast", 1, weight=3.0))
    crew = fleet(classes, (task(size=1, suited=(0, 1)),))
    bound(crew, 40)
    assert [engine.load for engine in crew.engines] == [10, 30]


def test_a_task_stays_on_its_engines_while_one_of_them_is_up() -> None:
    classes = (engines("h800", 2), engines("h20", 2))
    tasks = (task(size=1, suited=(1,), fallback=(0,)),)
    crew = fleet(classes, tasks)
    assert bound(crew, 3) == [2, 3, 2]
    down(crew, 2)
    assert bound(crew, 2) == [3, 3]
    down(crew, 3)
    assert bound(crew, 3) == [0, 1, 0]
    up(crew, 3)
    assert bound(crew, 2) == [3, 3]


def test_no_engine_for_a_task_means_no_binding() -> None:
    crew = fleet((engines("h800", 1), engines("h20", 1)), (task(size=1, suited=(1,)),))
    down(crew, 1)
    trajectory = newcomer()
    assert not crew.bind(trajectory)
    assert trajectory.engine == -1


def test_a_trajectory_sticks_to_its_engine_until_that_dies() -> None:
    crew = fleet((engines(count=2),))
    trajectory = newcomer()
    crew.bind(trajectory)
    bound(crew, 3)
    for _ in range(5):
        assert crew.bind(trajectory)
        assert trajectory.engine == 0
    down(crew, 0)
    up(crew, 0)
    assert not crew.holds(trajectory)
    crew.bind(trajectory)
    # The next incarnation is empty, so it is chosen; the lost binding was not counted down on it.
    assert (trajectory.engine, trajectory.incarnation) == (0, 1)
    assert [engine.load for engine in crew.engines] == [1, 2]


def test_without_stickiness_every_turn_goes_to_the_least_loaded() -> None:
    config = setup("sync+", {"router": {"sticky": False}}, tasks=(task(size=1),))
    state = ControllerState(tasks=[TaskState()], engines=[Engine(), Engine()])
    crew = Fleet(config, state, build(config.policy))
    trajectory = newcomer()
    crew.bind(trajectory)
    assert trajectory.engine == 0
    crew.bind(trajectory)
    assert trajectory.engine == 1
    assert [engine.load for engine in crew.engines] == [0, 1]


def test_round_robin_deals_by_number_over_the_engines_that_are_up() -> None:
    crew = fleet((engines(count=3),), router="round_robin")
    assert bound(crew, 5) == [0, 1, 2, 0, 1]
    down(crew, 1)
    assert bound(crew, 4) == [0, 2, 0, 2]


def test_a_release_frees_both_engines_of_a_pair() -> None:
    classes = (engines("prefill", 2, role=Role.PREFILL), engines("decode", 3, role=Role.DECODE))
    crew = fleet(classes, (task(size=1, suited=(0, 1)),))
    pairs = []
    trajectories = [newcomer(number) for number in range(4)]
    for trajectory in trajectories:
        crew.bind(trajectory)
        pairs.append((trajectory.prefill_engine, trajectory.engine))
    assert pairs == [(0, 2), (1, 3), (0, 4), (1, 2)]
    crew.release(trajectories[0])
    assert [engine.load for engine in crew.engines] == [1, 2, 1, 1, 1]
    assert (trajectories[0].engine, trajectories[0].prefill_engine) == (-1, -1)


def test_a_pair_that_loses_its_prefill_engine_gets_another() -> None:
    classes = (engines("prefill", 2, role=Role.PREFILL), engines("decode", 1, role=Role.DECODE))
    crew = fleet(classes, (task(size=1, suited=(0, 1)),))
    trajectory = newcomer()
    crew.bind(trajectory)
    down(crew, 0)
    assert not crew.holds(trajectory)
    crew.bind(trajectory)
    assert (trajectory.prefill_engine, trajectory.engine) == (1, 2)
    assert [engine.load for engine in crew.engines] == [0, 1, 1]


def test_a_decode_engine_without_any_prefill_engine_serves_alone() -> None:
    classes = (engines("prefill", 1, role=Role.PREFILL), engines("decode", 1, role=Role.DECODE))
    crew = fleet(classes, (task(size=1, suited=(0, 1)),))
    down(crew, 0)
    trajectory = newcomer()
    assert crew.bind(trajectory)
    assert (trajectory.prefill_engine, trajectory.engine) == (-1, 1)


@pytest.mark.parametrize("router", ["least_loaded", "round_robin"])
def test_the_heaps_stay_small_however_long_the_run(router: str) -> None:
    crew = fleet((engines(count=4),), router=router)
    crowd = [newcomer(number) for number in range(40)]
    for trajectory in crowd:
        crew.bind(trajectory)
    for number in range(2000):
        crew.release(crowd[number % 40])
        crew.bind(crowd[number % 40])
    assert max(len(heap) for heap in crew._heaps.values()) <= 64 + 8 * 4 + 1


def test_shares_decide_which_class_holds_how_many() -> None:
    shared = task(size=1, suited=(0, 1), shares=(0.75, 0.25))
    crew = fleet((engines("a", count=2), engines("b", count=1)), tasks=(shared,))
    classes = [crew.classes[engine] for engine in bound(crew, 8)]
    assert (classes.count(0), classes.count(1)) == (6, 2)
    assert [engine.load for engine in crew.engines] == [3, 3, 2]


def test_a_class_that_is_down_leaves_its_share_to_the_others() -> None:
    shared = task(size=1, suited=(0, 1), shares=(0.9, 0.1))
    crew = fleet((engines("a", count=1), engines("b", count=1)), tasks=(shared,))
    down(crew, 0)
    assert bound(crew, 3) == [1, 1, 1]
    up(crew, 0)
    assert bound(crew, 3) == [0, 0, 0]


def test_a_trajectory_that_leaves_makes_room_in_its_class() -> None:
    shared = task(size=1, suited=(0, 1), shares=(0.5, 0.5))
    crew = fleet((engines("a", count=1), engines("b", count=1)), tasks=(shared,))
    first, second = newcomer(0), newcomer(1)
    assert crew.bind(first)
    assert crew.bind(second)
    assert (first.engine, second.engine) == (0, 1)
    crew.release(second)
    assert bound(crew, 1) == [1]
