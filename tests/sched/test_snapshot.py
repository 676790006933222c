import pytest
from hypothesis import given, settings

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import RunLogError
from rollart.sched import PRESETS, Controller, ControllerConfig
from tests.sched.mixes import configs, lucks
from tests.sched.setups import engines, setup, task
from tests.sched.toydriver import Luck, ToyDriver

TASKS = (task("maze", size=2, groups=1), task("math", size=1, groups=1, max_turns=1))
TROUBLE = Luck(seed=2, environment_fails=0.1, reward_fails=0.1, late_answer=0.2, losses=((6, 0), (25, 1)), notice=2)


class Relay:
    """A controller that is written down and read again before every event, beside the one that never is."""

    def __init__(self, controller: Controller) -> None:
        self._config = controller.config
        self._snapshot = controller.snapshot()

    def watch(self, controller: Controller, event: e.Event, commands: list[c.Command]) -> None:
        """Decide the same event from the snapshot alone."""
        restored = Controller.restore(self._config, self._snapshot)
        assert restored.handle(event, 0.0) == commands
        self._snapshot = restored.snapshot()
        assert self._snapshot == controller.snapshot()


def relayed(driver: ToyDriver) -> ToyDriver:
    """A run through the relay."""
    driver.watch = Relay(driver.controller).watch
    return driver.run()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_restored_controller_decides_the_same_at_every_event(preset: str) -> None:
    config = setup(preset, tasks=TASKS, classes=(engines(count=2),), steps=3, slots=6)
    relayed(ToyDriver(config, TROUBLE))


@settings(max_examples=12, deadline=None)
@given(config=configs(steps=2), luck=lucks(engines_at_most=2))
def test_a_restored_controller_decides_the_same_in_any_mix(config: ControllerConfig, luck: Luck) -> None:
    relayed(ToyDriver(config, luck))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_goes_on_from_any_tenth_event_to_its_end(preset: str) -> None:
    config = setup(preset, tasks=TASKS, classes=(engines(count=2),), steps=2, slots=6)
    snapshots: list[bytes] = []
    driver = ToyDriver(config, TROUBLE, lambda controller, *_: snapshots.append(controller.snapshot()))
    driver.run()
    events = [record for _, _, record in driver.records if isinstance(record, e.Event)]
    expected = [record for _, _, record in driver.records if isinstance(record, c.Command)]
    for index in range(0, len(events), 10):
        restored = Controller.restore(config, snapshots[index])
        done = restored.state.next_command
        rest = [command for event in events[index + 1 :] for command in restored.handle(event, 0.0)]
        assert rest == expected[done:]


def test_what_is_no_snapshot_is_refused() -> None:
    with pytest.raises(RunLogError, match="controller snapshot: "):
        Controller.restore(setup(), b'{"tasks": 3}')
