"""A decision costs the same in a small run and in one of ten times the trajectories and engines."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from rollart.domain import events as e
from rollart.domain.plan import Role
from rollart.sched import Controller, ControllerConfig
from tests.sched.setups import engines, setup, task
from tests.sched.toydriver import Luck, ToyDriver

SMALL, LARGE = 2, 20
LUCK = Luck(seed=1, environment_fails=0.05)


class Counting:
    """Counts the byte codes that the package executes."""

    def __init__(self) -> None:
        self.executed = 0

    def _trace(self, frame: FrameType, what: str, _: Any) -> Any:
        if what == "call" and "rollart/sched" in frame.f_code.co_filename:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif what == "opcode":
            self.executed += 1
        return self._trace

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count within."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)


def config(preset: str, scale: int, roles: tuple[Role, ...]) -> ControllerConfig:
    """A run whose batch, engines and slots grow with the scale."""
    tasks = (task("maze", size=4, groups=scale, suited=tuple(range(len(roles)))),)
    classes = tuple(engines(role.value, scale, role=role) for role in roles)
    return setup(preset, tasks=tasks, classes=classes, steps=3, slots=12 * scale)


def codes_per_event(preset: str, scale: int, roles: tuple[Role, ...]) -> float:
    """Byte codes of a replay over its events."""
    driver = ToyDriver(config(preset, scale, roles), LUCK).run()
    events = [record for _, _, record in driver.records if isinstance(record, e.Event)]
    controller, counting = Controller(driver.config), Counting()
    with counting.on():
        for event in events:
            controller.handle(event, 0.0)
    return counting.executed / len(events)


@pytest.mark.parametrize("preset", ["sync", "sync+", "one-off", "areal", "rollart"])
def test_an_event_costs_the_same_at_ten_times_the_size(preset: str) -> None:
    small, large = (codes_per_event(preset, scale, (Role.BOTH,)) for scale in (SMALL, LARGE))
    assert large / small < 1.5, f"{small:.0f} byte codes per event became {large:.0f}"


def test_prefill_and_decode_apart_cost_the_same_at_ten_times_the_size() -> None:
    roles = (Role.PREFILL, Role.DECODE)
    small, large = (codes_per_event("rollart", scale, roles) for scale in (SMALL, LARGE))
    assert large / small < 1.5, f"{small:.0f} byte codes per event became {large:.0f}"


def test_the_open_commands_do_not_pile_up() -> None:
    def most_open(steps: int) -> int:
        sizes: list[int] = []
        many = setup("rollart", tasks=(task(size=2, groups=2),), classes=(engines(count=3),), steps=steps)
        losses = tuple((time, time % 3) for time in range(10, 200, 7))
        luck = Luck(seed=1, environment_fails=0.1, losses=losses)
        ToyDriver(many, luck, lambda controller, *_: sizes.append(len(controller.state.open))).run()
        return max(sizes)

    assert most_open(20) <= 2 * most_open(4)
