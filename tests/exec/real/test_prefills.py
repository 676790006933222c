"""Turns that are prefilled on one engine and decoded on another, with processes that answer as a test says."""

import asyncio

import pytest

pytest.importorskip("ray")

from rollart.domain.commands import AbortGeneration, GenerateTurn, ResetEnvironment
from rollart.domain.events import EngineLost, GenerationAborted, TurnGenerated
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.engines.handover import Handover
from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.episodes import Episodes

PREFILL, DECODE = 0, 1


class Process:
    """A mailbox whose other end is the test."""

    def __init__(self, received, lost):
        self.received, self.lost = received, lost
        self.posted, self.closed = [], False

    def post(self, message):
        self.posted.append(message)


class Pair:
    """A prefill and a decode engine with one trajectory, and what was reported."""

    def __init__(self):
        self.events, self.processes = [], {}
        self.episodes = Episodes()
        self.fleet = EngineFleet(2, self.start, {"t": 4}, self.episodes, None, asyncio.run, self.events.append, print)
        asyncio.run(self.fleet.start())
        self.episodes.begin(
            ResetEnvironment(
                id=0, trajectory=1, task="t", prompt=0, group=0, member=0, attempt=0, version=0, timeout_s=1.0
            )
        )
        self.episodes.ready(1, [1, 2])

    async def start(self, index, _incarnation, received, lost, *, suspended):
        assert not suspended
        self.processes[index] = Process(received, lost)
        return self.processes[index]

    @property
    def posted(self):
        return [self.processes[engine].posted for engine in (PREFILL, DECODE)]

    def generate(self, command):
        self.fleet.generate(
            GenerateTurn(
                id=command,
                trajectory=1,
                group=0,
                turn=0,
                engine=DECODE,
                incarnation=0,
                prefill_engine=PREFILL,
                context_tokens=2,
                reusable_tokens=0,
                shared_tokens=0,
                partial_tokens=0,
                max_tokens=100,
            )
        )

    def abort(self, command, target):
        self.fleet.abort(AbortGeneration(id=command, target=target, trajectory=1, engine=DECODE, incarnation=0))


def turn(tokens, **changes):
    fields = {
        "tokens": tokens,
        "logprobs": [-0.5] * len(tokens),
        "versions": [3] * len(tokens),
        "finished": True,
        "cached_tokens": 0,
        "recomputed_tokens": 0,
        "preemptions": 0,
        "queue_s": 1.0,
        "prefill_s": 2.0,
        "decode_s": 4.0,
    }
    return Turn(**{**fields, **changes})


HANDOVER = Handover(parameters={"name": "x"}, prefilled=turn([9], cached_tokens=16, decode_s=0.5))


def test_a_prompt_goes_to_one_engine_and_the_turn_to_the_other():
    pair = Pair()
    pair.generate(5)
    assert pair.posted == [[("prefill", 5, "t", [1, 2])], []]
    pair.processes[PREFILL].received(("prefilled", 5, HANDOVER))
    assert pair.posted[DECODE] == [("turn", 5, "t", [1, 2], 4, HANDOVER)]
    pair.processes[DECODE].received(("turn", 5, turn([7, 8])))
    (event,) = pair.events
    assert isinstance(event, TurnGenerated)
    assert pair.episodes[1].turn == [7, 8]


def test_a_turn_counts_the_work_on_its_prompt():
    told = turn([7, 8], recomputed_tokens=3).behind(HANDOVER.prefilled)
    assert (told.tokens, told.cached_tokens, told.recomputed_tokens) == ([7, 8], 16, 3)
    assert (told.queue_s, told.prefill_s, told.decode_s) == (2.0, 4.5, 4.0)


def test_a_turn_that_was_cut_off_goes_on():
    told = turn([7], finished=False).followed_by(turn([8, 9], cached_tokens=32, versions=[4, 4]), 50)
    assert (told.tokens, told.versions, told.finished) == ([7, 8, 9], [3, 4, 4], True)
    assert (told.cached_tokens, told.recomputed_tokens, told.decode_s) == (0, 18, 8.0)


def test_an_aborted_prompt_is_answered_at_once_and_its_kv_given_up():
    pair = Pair()
    pair.generate(5)
    pair.abort(6, 5)
    assert pair.events == [GenerationAborted(command_id=6, output_tokens=0)]
    assert pair.posted[PREFILL][1:] == [("abort", 5, 5)]
    pair.processes[PREFILL].received(("prefilled", 5, HANDOVER))
    assert pair.posted[DECODE] == [("release", 5, HANDOVER)]
    pair.processes[PREFILL].received(("aborted", 5, 5, None))
    assert len(pair.events) == 1


def test_a_prompt_that_was_stopped_in_time_leaves_nothing():
    pair = Pair()
    pair.generate(5)
    pair.abort(6, 5)
    pair.processes[PREFILL].received(("aborted", 5, 5, None))
    pair.processes[PREFILL].received(("prefilled", 5, HANDOVER))
    assert pair.posted[DECODE] == []


def test_a_dead_prefill_engine_is_reported_with_the_turns_that_waited_for_it():
    pair = Pair()
    pair.generate(5)
    pair.processes[PREFILL].lost("killed")
    assert pair.events == [EngineLost(engine=PREFILL, incarnation=0, commands=(5,), saved_tokens=(0,))]
    pair.generate(6)
    assert pair.events[1:] == [EngineLost(engine=PREFILL, incarnation=0, commands=(6,), saved_tokens=(0,))]


def test_a_dead_decode_engine_stops_the_prompts_of_its_turns():
    pair = Pair()
    pair.generate(5)
    pair.processes[DECODE].lost("killed")
    assert pair.events == [EngineLost(engine=DECODE, incarnation=0, commands=(5,), saved_tokens=(0,))]
    assert pair.posted[PREFILL][1:] == [("abort", 5, 5)]


def test_without_anything_to_hand_over_the_decode_engine_works_alone():
    pair = Pair()
    pair.generate(5)
    pair.processes[PREFILL].received(("prefilled", 5, None))
    assert pair.posted[DECODE] == [("turn", 5, "t", [1, 2], 4, None)]
