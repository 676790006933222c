"""What the control plane promises, whatever happens: checked after every event of random runs."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given, settings

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import End
from rollart.runlog.invariants import check_invariants
from rollart.sched import Controller, ControllerConfig
from rollart.sched.state import ControllerState, EngineStatus, Phase
from tests.sched.mixes import configs, lucks
from tests.sched.setups import header
from tests.sched.toydriver import Luck, ToyDriver

UNDER_WAY = {Phase.RESETTING, Phase.GENERATING, Phase.STEPPING, Phase.HELD, Phase.BACKOFF}
WITH_ENGINE = {Phase.GENERATING, Phase.STEPPING, Phase.HELD}


def check_loads(state: ControllerState) -> None:
    """Every engine's load is the number of trajectories bound to it."""
    bound: Counter[int] = Counter()
    for trajectory in state.trajectories.values():
        pairs = (
            (trajectory.engine, trajectory.incarnation),
            (trajectory.prefill_engine, trajectory.prefill_incarnation),
        )
        for engine, incarnation in pairs:
            if engine >= 0 and state.engines[engine].incarnation == incarnation:
                bound[engine] += 1
        assert trajectory.engine < 0 or trajectory.phase in WITH_ENGINE
    for index, engine in enumerate(state.engines):
        assert engine.load == (bound[index] if engine.status is EngineStatus.UP else 0)


def check_state(controller: Controller, _: e.Event, commands: list[c.Command]) -> None:
    """What holds between any two events."""
    state = controller.state
    if state.stopped:
        assert state.trajectories == {} and state.groups == {}
        return
    check_loads(state)
    assert 0 <= state.slots_used <= controller.config.environment_slots
    assert state.active == sum(trajectory.phase in UNDER_WAY for trajectory in state.trajectories.values())
    assert state.installed <= state.trained <= state.taken
    members = [member for group in state.groups.values() for member in group.members]
    assert sorted(members) == sorted(state.trajectories)
    assert sorted(group for groups in state.by_version.values() for group in groups) == sorted(state.groups)
    ids = [command.id for command in commands]
    assert ids == sorted(set(ids))


def run(config: ControllerConfig, luck: Luck) -> ToyDriver:
    """A whole run, with its state checked at every event."""
    losses = tuple((time, engine % len(config.engine_classes)) for time, engine in luck.losses)
    return ToyDriver(config, dataclasses.replace(luck, losses=losses), check_state).run()


def check_run(config: ControllerConfig, luck: Luck) -> None:
    """It ends, keeps every invariant of run logs, and trains what it was asked to."""
    driver = run(config, luck)
    bound = driver.controller.policy.staleness.bound
    report = check_invariants(driver.records, header(config), staleness_bound=bound)
    assert report.violation is None
    batch = sum(task.groups_per_batch * task.group_size for task in config.tasks)
    assert Counter(driver.ends.values())[End.TRAINED] == config.steps * batch
    assert driver.controller.state.trained == config.steps
    assert len(driver.ends) == driver.controller.state.next_trajectory


@settings(max_examples=40, deadline=None)
@given(config=configs(), luck=lucks())
def test_every_run_ends_and_keeps_its_promises(config: ControllerConfig, luck: Luck) -> None:
    check_run(config, luck)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(config=configs(steps=5), luck=lucks())
def test_every_long_run_ends_and_keeps_its_promises(config: ControllerConfig, luck: Luck) -> None:
    check_run(config, luck)


@settings(max_examples=12, deadline=None)
@given(config=configs(steps=2), luck=lucks())
def test_the_same_luck_gives_the_same_log(config: ControllerConfig, luck: Luck) -> None:
    assert run(config, luck).records == run(config, luck).records
