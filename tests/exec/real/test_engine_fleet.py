"""Engines from the driver's side, with processes that answer as a test says."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("ray")

from rollart.domain.commands import (
    AbortGeneration,
    GenerateTurn,
    ResetEnvironment,
    RestartEngine,
    UpdateEngine,
    WeightSource,
)
from rollart.domain.errors import StartError
from rollart.domain.events import EngineLost, EngineStarted, EngineUpdated, GenerationAborted, TurnGenerated
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.weights.members import Member


class Process:
    """A mailbox whose other end is the test."""

    def __init__(self, received, lost, suspended):
        self.received, self.lost, self.suspended = received, lost, suspended
        self.posted, self.offered, self.closed = [], {}, False
        self.actor = SimpleNamespace(offer=SimpleNamespace(remote=self.offered.__setitem__))

    def post(self, message):
        self.posted.append(message)

    def kill(self):
        """Nothing to end."""


class Store:
    """Weights are names; version 5 has come with a broadcast, and version 6 is lost."""

    def has_arrived(self, command):
        return command.version == 5

    async def pushed(self, version):
        return None if version == 6 else [f"v{version}"]


class Bench:
    """A fleet of one engine, and what it has reported."""

    def __init__(self):
        self.events, self.processes, self.reasons = [], [], []
        self.stillborn, self.shortlived = set(), set()
        self.episodes = Episodes()
        report, why = self.events.append, lambda *told: self.reasons.append(told)
        self.fleet = EngineFleet(1, self.start, {"t": 4}, self.episodes, Store(), self.spawn, report, why)
        asyncio.run(self.fleet.start())

    async def start(self, _index, incarnation, received, lost, *, suspended):
        if incarnation in self.stillborn:
            raise StartError("no memory")
        process = Process(received, lost, suspended)
        if incarnation in self.shortlived:
            process.closed = True
            lost("killed")
        self.processes.append(process)
        return process

    def spawn(self, work):
        asyncio.run(work)

    def begin(self, trajectory):
        self.episodes.begin(
            ResetEnvironment(
                id=0, trajectory=trajectory, task="t", prompt=0, group=0, member=0, attempt=0, version=0, timeout_s=1.0
            )
        )
        self.episodes.ready(trajectory, [1, 2])

    def generate(self, command, trajectory, *, incarnation=0, partial=0, max_tokens=100):
        self.fleet.generate(
            GenerateTurn(
                id=command,
                trajectory=trajectory,
                group=0,
                turn=0,
                engine=0,
                incarnation=incarnation,
                prefill_engine=None,
                context_tokens=2,
                reusable_tokens=0,
                shared_tokens=0,
                partial_tokens=partial,
                max_tokens=max_tokens,
            )
        )


def turn(tokens, *, finished=False):
    return Turn(
        tokens=tokens,
        logprobs=[-0.5] * len(tokens),
        versions=[0] * len(tokens),
        finished=finished,
        cached_tokens=0,
        recomputed_tokens=0,
        preemptions=0,
        queue_s=0.0,
        prefill_s=0.1,
        decode_s=0.2,
    )


@pytest.mark.parametrize(
    ("max_tokens", "tokens", "finished", "truncated"),
    [(100, 4, False, False), (3, 3, False, True), (100, 2, True, False), (3, 2, True, False)],
    ids=["its own limit", "the context", "a stop token", "a stop token in time"],
)
def test_only_the_context_cuts_a_trajectory(max_tokens, tokens, finished, truncated):
    bench = Bench()
    bench.begin(1)
    bench.generate(5, 1, max_tokens=max_tokens)
    assert bench.processes[0].posted == [("turn", 5, "t", [1, 2], min(4, max_tokens))]
    bench.processes[0].received(("turn", 5, turn([7] * tokens, finished=finished)))
    (event,) = bench.events
    assert isinstance(event, TurnGenerated)
    assert (event.output_tokens, event.truncated) == (tokens, truncated)
    assert bench.episodes[1].turn == [7] * tokens


def test_an_abort_keeps_what_was_made_and_the_rest_is_asked_for_again():
    bench = Bench()
    bench.begin(1)
    bench.generate(5, 1)
    bench.fleet.abort(AbortGeneration(id=6, target=5, trajectory=1, engine=0, incarnation=0))
    bench.processes[0].received(("aborted", 6, 5, turn([7])))
    assert bench.events == [GenerationAborted(command_id=6, output_tokens=1)]
    bench.generate(8, 1, partial=1)
    assert bench.processes[0].posted[-1] == ("turn", 8, "t", [1, 2, 7], 3)


def test_a_turn_that_was_aborted_too_late_counts_once():
    bench = Bench()
    bench.begin(1)
    bench.generate(5, 1)
    bench.fleet.abort(AbortGeneration(id=6, target=5, trajectory=1, engine=0, incarnation=0))
    bench.processes[0].received(("turn", 5, turn([7] * 4)))
    bench.processes[0].received(("aborted", 6, 5, None))
    assert bench.events == [GenerationAborted(command_id=6, output_tokens=0)]
    assert bench.episodes[1].turn == []


def test_a_dead_engine_is_reported_with_its_turns_and_restarted_suspended():
    bench = Bench()
    bench.begin(1)
    bench.generate(5, 1)
    bench.processes[0].lost("killed")
    bench.generate(6, 1)
    assert bench.events == [
        EngineLost(engine=0, incarnation=0, commands=(5,), saved_tokens=(0,)),
        EngineLost(engine=0, incarnation=0, commands=(6,), saved_tokens=(0,)),
    ]
    bench.fleet.restart(RestartEngine(id=9, engine=0, incarnation=1))
    assert bench.events[-1] == EngineStarted(command_id=9)
    assert bench.processes[1].suspended
    bench.processes[0].received(("turn", 5, turn([7])))
    bench.fleet.update(UpdateEngine(id=10, engine=0, incarnation=1, version=3, source=WeightSource.STORE))
    assert bench.processes[1].posted == [("update", 10, 3, True)]
    assert bench.processes[1].offered == {10: ["v3"]}
    bench.processes[1].received(("updated", 10, 3, 0.1))
    assert bench.events[-1] == EngineUpdated(command_id=10, version=3)


def test_an_engine_that_dies_while_it_starts_again_is_lost_in_that_incarnation():
    bench = Bench()
    bench.processes[0].lost("killed")
    bench.stillborn = {1, 2}
    for incarnation in (1, 2, 3):
        bench.fleet.restart(RestartEngine(id=incarnation, engine=0, incarnation=incarnation))
    assert bench.events == [
        *(EngineLost(engine=0, incarnation=each, commands=(), saved_tokens=()) for each in (0, 1, 2)),
        EngineStarted(command_id=3),
    ]
    assert bench.reasons == [("engine 0", "killed"), ("engine 0", "no memory"), ("engine 0", "no memory")]


def test_an_engine_that_dies_between_its_start_and_its_first_order_is_lost_in_that_incarnation():
    bench = Bench()
    bench.processes[0].lost("killed")
    bench.shortlived = {1}
    for incarnation in (1, 2):
        bench.fleet.restart(RestartEngine(id=incarnation, engine=0, incarnation=incarnation))
    assert bench.events == [
        *(EngineLost(engine=0, incarnation=each, commands=(), saved_tokens=()) for each in (0, 1)),
        EngineStarted(command_id=2),
    ]
    assert bench.reasons[1] == ("engine 0", "engine 0 died when it had just started")


def test_an_engine_that_does_not_start_at_first_ends_the_run():
    bench = Bench()
    bench.stillborn = {0}
    with pytest.raises(StartError, match="no memory"):
        asyncio.run(bench.fleet.start())


def test_the_initial_version_is_in_the_folder():
    bench = Bench()
    bench.fleet.update(UpdateEngine(id=3, engine=0, incarnation=0, version=0, source=WeightSource.STORE))
    bench.fleet.update(UpdateEngine(id=4, engine=0, incarnation=0, version=2, source=WeightSource.HOST))
    assert bench.processes[0].posted == [("update", 3, 0, False), ("update", 4, 2, False)]
    assert bench.processes[0].offered == {}


def test_what_has_come_with_a_broadcast_is_not_fetched():
    bench = Bench()
    bench.fleet.update(UpdateEngine(id=3, engine=0, incarnation=0, version=5, source=WeightSource.BROADCAST))
    bench.fleet.update(UpdateEngine(id=4, engine=0, incarnation=0, version=4, source=WeightSource.BROADCAST))
    assert bench.processes[0].posted == [("update", 3, 5, False), ("update", 4, 4, True)]
    assert bench.processes[0].offered == {4: ["v4"]}


def test_an_engine_that_nobody_can_give_its_version_is_lost():
    bench = Bench()
    bench.fleet.update(UpdateEngine(id=3, engine=0, incarnation=0, version=6, source=WeightSource.STORE))
    assert bench.processes[0].posted == []
    assert bench.events == [EngineLost(engine=0, incarnation=0, commands=(), saved_tokens=())]


def test_members_of_a_broadcast_are_the_engines_that_are_up_and_asked_for():
    bench = Bench()
    bench.processes[0].actor = "process"
    assert bench.fleet.members({0: 2}) == [Member(engine=0, incarnation=0, workers=2, process="process")]
    assert bench.fleet.members({1: 2}) == []
    bench.processes[0].lost("killed")
    assert bench.fleet.members({0: 2}) == []
