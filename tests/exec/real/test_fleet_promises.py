"""Whatever environments and their processes do: orders are answered once, failures have a cause, no place is lost."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("ray")

from rollart.domain.events import EnvironmentClosed, EnvironmentFailed
from rollart.domain.trajectory import Cause
from rollart.exec.real.environments.fleet import CLOSE_S, SWEEP_S
from tests.exec.real.test_environment_fleet import Bench

TIMEOUT_S = 20.0
PLACES, PROCESSES, TRAJECTORIES = 2, 2, 3


class World:
    """A fleet, a controller that keeps to the rules, and processes that do as they are told."""

    def __init__(self):
        self.bench = Bench(environments_per_process=PLACES, processes=PROCESSES)
        self.state = {}
        """Trajectory -> its open order, "rests" or "failed"."""
        self.ordered, self.void, self.refused, self.closes = [], set(), set(), []
        self.seen = 0

    def go(self, number):
        """The controller asks for the next thing."""
        trajectory = number % TRAJECTORIES
        state = self.state.get(trajectory)
        if state in (None, "rests"):
            order = self.bench.reset if state is None else self.bench.step
            self.state[trajectory] = command = order(trajectory, timeout_s=TIMEOUT_S)
            self.ordered.append((command, trajectory))

    def close(self, number):
        """The controller has enough of a trajectory."""
        state = self.state.pop(number % TRAJECTORIES, None)
        if state is not None:
            # Where it is an order, an answer is neither owed nor wrong any more.
            self.void.add(state)
            self.closes.append(self.bench.close(number % TRAJECTORIES))

    def alive(self):
        """Processes that have not ended."""
        return [process for process in self.bench.processes if not process.killed]

    def posted(self, *kinds):
        """What living processes have been asked."""
        return [(process, message) for process in self.alive() for message in process.posted if message[0] in kinds]

    def answer(self, number):
        """A process answers an order, perhaps one that nobody waits for any more."""
        asked = self.posted("reset", "step", "close")
        if asked:
            process, (kind, command, *_) = asked[number % len(asked)]
            answers = {
                "reset": ("ready", command, [1], 0.1),
                "step": ("stepped", command, [2], 0.0, False, 0.1),
                "close": ("closed", command),
            }
            process.received(answers[kind])

    def refuse(self, number):
        """An environment raises an error."""
        asked = self.posted("reset", "step")
        if asked:
            process, (_, command, *_) = asked[number % len(asked)]
            self.refused.add(command)
            process.received(("failed", command, "no"))

    def die(self, number):
        """A process is killed."""
        alive = self.alive()
        if alive:
            process = alive[number % len(alive)]
            process.killed = True
            process.lost("killed")

    def wait(self, number):
        """Time passes, in which orders may become overdue."""
        self.bench.pass_time(float(number))

    def follow(self):
        """Read what has been reported, as a controller would."""
        trajectory_of = dict(self.ordered)
        for event in self.bench.events[self.seen :]:
            if isinstance(event, EnvironmentClosed):
                continue
            trajectory = trajectory_of[event.command_id]
            failed = isinstance(event, EnvironmentFailed)
            if failed and event.cause is Cause.ERROR:
                assert event.command_id in self.refused or self.home(trajectory).killed
            if self.state.get(trajectory) == event.command_id:
                self.state[trajectory] = "failed" if failed else "rests"
        self.seen = len(self.bench.events)

    def home(self, trajectory):
        """The process in which a trajectory was begun last."""
        resets = [
            (message[1], place)
            for place, process in enumerate(self.bench.processes)
            for message in process.posted
            if message[0] == "reset" and message[2] == trajectory
        ]
        return self.bench.processes[max(resets)[1]]


DEEDS = st.sampled_from((World.go, World.go, World.close, World.answer, World.refuse, World.die, World.wait))


@settings(max_examples=300)
@given(st.lists(st.tuples(DEEDS, st.integers(0, 30)), max_size=60))
def test_orders_are_answered_once_failures_have_a_cause_and_no_place_is_lost(deeds):
    world = World()
    for deed, number in deeds:
        deed(world, number)
        world.follow()
    for trajectory in range(TRAJECTORIES):
        world.close(trajectory)
    world.bench.pass_time(TIMEOUT_S + CLOSE_S + 2 * SWEEP_S)
    answers = Counter(event.command_id for event in world.bench.events)
    assert all(answers[close] == 1 for close in world.closes)
    for command, _ in world.ordered:
        assert answers[command] <= 1
        assert answers[command] == 1 or command in world.void
    for trajectory in range(PLACES * PROCESSES):
        command = world.bench.reset(100 + trajectory)
        assert any(message[1] == command for _, message in world.posted("reset"))
