import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import End
from rollart.sched import Controller, ControllerConfig, resolve
from rollart.sched.parts import SLOTS
from rollart.sched.state import Phase, SyncPhase
from tests.sched.mixes import configs, lucks
from tests.sched.protocol_tables import PAGE, with_tables
from tests.sched.setups import engines, setup, task
from tests.sched.toydriver import Luck, ToyDriver

TEXT = PAGE.read_text(encoding="utf-8")
Arrows = dict[str, set[str]]


def arrows(diagram: int) -> Arrows:
    """State -> states that its arrows lead to, in one diagram of the page."""
    drawing = re.findall(r"```mermaid\n(.*?)```", TEXT, re.DOTALL)[diagram]
    found: Arrows = defaultdict(set)
    for start, end in re.findall(r"^ +(\S+) --> (\w+|\[\*\])", drawing, re.MULTILINE):
        found[start].add(end)
    return found


def reached(found: Arrows, start: str, steps: int) -> set[str]:
    """States within so many arrows."""
    near = {start}
    for _ in range(steps):
        near |= {end for state in near for end in found[state]}
    return near


def test_the_tables_are_those_of_the_code() -> None:
    assert with_tables(TEXT) == TEXT, "run python -m tests.sched.protocol_tables"


def test_the_diagrams_have_every_state() -> None:
    for diagram, states in ((0, Phase), (1, SyncPhase)):
        drawn = {state for start, ends in arrows(diagram).items() for state in (start, *ends)} - {"[*]"}
        assert drawn == {state.name for state in states}


def test_every_end_is_explained() -> None:
    for end in End:
        assert f"- `{end.value}`: " in TEXT


@settings(max_examples=30, deadline=None)
@given(config=configs(steps=2), luck=lucks(engines_at_most=2))
def test_runs_follow_the_arrows(config: ControllerConfig, luck: Luck) -> None:
    lives, updates = arrows(0), arrows(1)
    last: dict[int, str] = {}
    phase = [SyncPhase.IDLE.name]

    def watch(controller: Controller, *_: object) -> None:
        for trajectory in controller.state.trajectories.values():
            now = trajectory.phase.name
            # A new one may go on within its event, any other passes one state (FINISHED, HELD) unseen.
            assert now in reached(lives, last.get(trajectory.id, "QUEUED"), 2)
            last[trajectory.id] = now
        now = controller.state.sync.phase.name
        # Phases that ask nobody are passed at once.
        assert now in reached(updates, phase[0], 4)
        phase[0] = now

    # A run that is resumed begins again outside the arrows.
    ToyDriver(config, dataclasses.replace(luck, crashes=()), watch).run()


@pytest.fixture
def example() -> Iterator[dict[str, Any]]:
    """The names that the page's example defines."""
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(code.splitlines()) < 30
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(PAGE), "exec"), names)
    yield names
    del SLOTS["router"]["long_context"]


def test_the_example_of_a_new_part_works(example: dict[str, Any]) -> None:
    assert example["policy"].parts["router"] == {"kind": "long_context", "limit_tokens": 8192}
    short = resolve("rollart", {"router": {"kind": "long_context", "limit_tokens": 60}})
    config = setup(
        "rollart",
        {"router": dict(short.parts["router"])},
        tasks=(task(size=2, fallback=(1,)),),
        classes=(engines("h20", 2), engines("h800", 1)),
    )
    driver = ToyDriver(config, Luck(seed=1)).run()
    turns = [record for _, _, record in driver.records if isinstance(record, c.GenerateTurn)]
    assert {(turn.context_tokens > 60, turn.engine == 2) for turn in turns} == {(True, True), (False, False)}
    assert isinstance(driver.records[0][2], e.RunStarted)
