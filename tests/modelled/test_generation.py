"""Turns on one engine, and from a prefill engine (0) to a decode engine (1).

An iteration takes 1 s and a prompt token 1/64 s; the link moves the KV of 64 tokens a second. A turn of 64 prompt and 5
output tokens is prefilled from 0 s to 2 s, moved until 3 s, and decoded until 7 s; 4 tokens of KV go back in 1/16 s.
"""

import pytest

from rollart.domain.cluster import Link
from rollart.domain.commands import AbortGeneration, GenerateTurn, ResetEnvironment, UpdateEngine, WeightSource
from rollart.domain.events import EngineLost, GenerationAborted, TurnGenerated
from rollart.domain.plan import KvReturn
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.episodes import Episodes
from rollart.modelled.generation import Generation
from rollart.modelled.network import SharedLink
from rollart.serving.config import EngineConfig
from tests.modelled.toys import ToyCosts, ToyWorkload, spec
from tests.sim.runs import Bench

RECOMPUTE, TRANSFER = KvReturn.RECOMPUTE, KvReturn.TRANSFER


class Stand(Bench):
    """Two engines and a link between them."""

    def __init__(self, kv_return=RECOMPUTE, outputs=(5, 3)):
        super().__init__()
        config = EngineConfig(max_num_seqs=8, max_num_batched_tokens=8192, kv_blocks=1024, block_size=1)
        costs = ToyCosts(overhead_s=1.0, token_s=1 / 64)
        self.workers = [EngineWorker(index, config, costs, self.clock, self.report) for index in range(2)]
        self.episodes = Episodes(ToyWorkload(lambda *key: spec(key=key, outputs=outputs)))
        self.link = SharedLink(Link(bandwidth_bytes_per_s=64e6), self.clock)
        self.generation = Generation(
            self.workers, self.episodes, lambda *_: self.link, 1e6, kv_return, self.clock, self.report
        )

    def generate(self, time_s, number=0, *, turn=0, prefill=0, context=64, trajectory=0, **fields):
        reset = ResetEnvironment(
            id=0,
            trajectory=trajectory,
            task="maze",
            prompt=0,
            group=0,
            member=0,
            attempt=0,
            version=0,
            timeout_s=1.0,
        )
        if trajectory not in self.episodes.specs:
            self.episodes.begin(reset)
        settings = {"incarnation": 0, "reusable_tokens": 0, "partial_tokens": 0, "max_tokens": 1000, **fields}
        order = GenerateTurn(
            id=number,
            trajectory=trajectory,
            group=0,
            turn=turn,
            engine=1,
            prefill_engine=prefill,
            context_tokens=context,
            shared_tokens=0,
            **settings,
        )
        self.at(time_s, lambda: self.generation.generate(order))

    def abort(self, time_s, number=90, *, target=0):
        order = AbortGeneration(id=number, target=target, trajectory=0, engine=1, incarnation=0)
        self.at(time_s, lambda: self.generation.abort(order))

    def lose(self, time_s, engine):
        self.at(time_s, lambda: self.generation.lose(engine))

    def empty(self):
        return all(worker.engine.running + worker.engine.waiting == 0 for worker in self.workers)


def generated(output=5, *, command=0, **fields):
    settings = {
        "cached_tokens": 0,
        "recomputed_tokens": 0,
        "preemptions": 0,
        "truncated": False,
        "queue_s": 0.0,
        "prefill_s": 2.0,
        "decode_s": 4.0,
    }
    return TurnGenerated(command_id=command, output_tokens=output, **{**settings, **fields})


# One engine for both phases


def test_a_turn_makes_the_recorded_tokens():
    stand = Stand()
    stand.generate(1.0, prefill=None)
    assert stand.run() == [(7.0, generated())]
    assert stand.link.bytes == 0


def test_a_turn_is_cut_at_its_limit():
    stand = Stand()
    stand.generate(0.0, prefill=None, max_tokens=2)
    assert stand.run() == [(3.0, generated(2, decode_s=1.0, truncated=True))]


def test_a_turn_that_needs_exactly_its_limit_is_not_cut():
    stand = Stand()
    stand.generate(0.0, prefill=None, max_tokens=5)
    assert stand.run() == [(6.0, generated())]


def test_tokens_made_before_a_migration_are_not_made_again():
    stand = Stand()
    stand.generate(0.0, prefill=None, context=64, partial_tokens=3)
    assert stand.run() == [(3.0, generated(2, decode_s=1.0))]


def test_a_turn_that_was_whole_already_makes_one_more_token():
    stand = Stand()
    stand.generate(0.0, prefill=None, partial_tokens=5)
    assert stand.run() == [(2.0, generated(1, decode_s=0.0))]


def test_an_abort_on_one_engine():
    stand = Stand()
    stand.generate(0.0, prefill=None)
    stand.abort(4.5)
    assert stand.run() == [(4.5, GenerationAborted(command_id=90, output_tokens=3))]
    assert stand.empty()


def test_the_loss_of_one_engine_saves_its_tokens():
    stand = Stand()
    stand.generate(0.0, prefill=None)
    stand.lose(4.5, 1)
    stand.lose(5.0, 0)
    assert stand.run() == [
        (4.5, EngineLost(engine=1, incarnation=0, commands=(0,), saved_tokens=(3,))),
        (5.0, EngineLost(engine=0, incarnation=0, commands=(), saved_tokens=())),
    ]


@pytest.mark.parametrize(("dead", "prefill"), [(1, None), (1, 0), (0, 0)])
def test_a_turn_for_a_dead_engine_is_lost_at_once(dead, prefill):
    stand = Stand()
    stand.lose(0.5, dead)
    stand.generate(1.0, 7, prefill=prefill)
    lost = EngineLost(engine=dead, incarnation=0, commands=(7,), saved_tokens=(0,))
    assert stand.run()[1:] == [(1.0, lost)]


def test_a_turn_for_an_earlier_incarnation_is_lost_at_once():
    stand = Stand()
    stand.lose(0.5, 1)
    stand.at(0.75, lambda: stand.workers[1].start(1))
    stand.generate(1.0, 7, prefill=None)
    assert stand.run()[1:] == [(1.0, EngineLost(engine=1, incarnation=0, commands=(7,), saved_tokens=(0,)))]


# Prefill here, decode there


def test_the_prompt_moves_over_the_link_before_it_is_decoded():
    stand = Stand()
    stand.generate(0.0)
    assert stand.run() == [(7.0, generated(prefill_s=3.0))]
    assert (stand.link.bytes, stand.link.busy_s) == (64e6, 1.0)
    assert [worker.usage()[-1].prefill_tokens for worker in stand.workers] == [64, 0]
    assert [worker.usage()[-1].decode_tokens for worker in stand.workers] == [0, 4]


def test_the_decoded_tokens_go_back_before_the_turn_is_told():
    stand = Stand(TRANSFER)
    stand.generate(0.0)
    assert stand.run() == [(7.0625, generated(prefill_s=3.0, decode_s=4.0625))]
    assert stand.link.bytes == 68e6


@pytest.mark.parametrize("kv_return", KvReturn)
def test_the_times_of_a_turn_add_up(kv_return):
    stand = Stand(kv_return)
    for number in range(3):
        stand.generate(number * 1.3, number, trajectory=number)
    stand.run()
    for time_s, event in stand.events:
        taken_s = event.queue_s + event.prefill_s + event.decode_s
        assert taken_s == pytest.approx(time_s - event.command_id * 1.3)


def test_the_next_turn_moves_only_what_the_decode_engine_lacks():
    stand = Stand()
    stand.generate(0.0)
    stand.generate(10.0, 1, turn=1, context=64 + 5 + 16, reusable_tokens=69)
    stand.run()
    assert stand.link.bytes == 64e6 + 17e6
    # Of the 69 tokens of history the prefill engine has the prompt; 21 tokens are computed, in 1 + 21/64 s.
    assert stand.events[1] == (
        10.0 + 1 + 21 / 64 + 17 / 64 + 2.0,
        generated(3, command=1, cached_tokens=64, recomputed_tokens=5, prefill_s=1 + 38 / 64, decode_s=2.0),
    )


def test_with_the_kv_sent_back_the_next_turn_computes_only_what_is_new():
    stand = Stand(TRANSFER)
    stand.generate(0.0)
    stand.generate(10.0, 1, turn=1, context=64 + 5 + 16, reusable_tokens=69)
    stand.run()
    # 68 tokens have KV on the prefill engine: the prompt, and what was decoded but for the last token.
    assert stand.events[1][1].cached_tokens == 68
    assert stand.events[1][1].recomputed_tokens == 1


def test_after_a_restart_of_the_decode_engine_the_whole_context_moves():
    stand = Stand()
    stand.generate(0.0)
    stand.lose(8.0, 1)
    stand.at(9.0, lambda: stand.workers[1].start(1))
    stand.generate(10.0, 1, turn=1, context=85, reusable_tokens=69, incarnation=1)
    stand.run()
    assert stand.link.bytes == 64e6 + 85e6


def test_after_a_weight_update_of_the_decode_engine_the_whole_context_moves():
    stand = Stand()
    update = UpdateEngine(id=50, engine=1, incarnation=0, version=1, source=WeightSource.HOST)
    stand.generate(0.0)
    stand.at(8.0, lambda: stand.workers[1].update(update, 0.5))
    stand.generate(10.0, 1, turn=1, context=85, reusable_tokens=69)
    stand.run()
    assert stand.link.bytes == 64e6 + 85e6


def test_a_trajectory_that_has_ended_is_forgotten():
    stand = Stand()
    stand.generate(0.0)
    stand.at(8.0, lambda: stand.generation.forget(0))
    stand.generate(10.0, 1, turn=1, context=85, reusable_tokens=69)
    stand.run()
    assert stand.link.bytes == 64e6 + 85e6


def test_a_turn_of_one_token_is_over_when_its_kv_has_moved():
    stand = Stand(outputs=(1,))
    stand.generate(0.0)
    assert stand.run() == [(3.0, generated(1, prefill_s=3.0, decode_s=0.0))]


def test_transfers_share_the_link():
    stand = Stand()
    for trajectory in range(2):
        stand.generate(0.0, trajectory, trajectory=trajectory)
    stand.run()
    # Prefill of 128 tokens ends at 3 s; 128 tokens of KV over one link until 5 s; four more tokens.
    assert [time_s for time_s, _ in stand.events] == [9.0, 9.0]


PHASES = pytest.mark.parametrize(
    ("phase", "time_s", "made"),
    [("prefill", 1.5, 0), ("on its way", 2.5, 1), ("decoding", 5.5, 3), ("going back", 7.03125, 5)],
)


@PHASES
def test_an_abort_tells_the_tokens_made_in_every_phase(phase, time_s, made):
    stand = Stand(TRANSFER)
    stand.generate(0.0)
    stand.abort(time_s)
    assert stand.run() == [(time_s, GenerationAborted(command_id=90, output_tokens=made))], phase
    assert stand.empty()


@PHASES
def test_the_loss_of_the_decode_engine_saves_the_tokens_made(phase, time_s, made):
    stand = Stand(TRANSFER)
    stand.generate(0.0)
    stand.lose(time_s, 1)
    lost = EngineLost(engine=1, incarnation=0, commands=(0,), saved_tokens=(made,))
    assert stand.run() == [(time_s, lost)], phase
    assert stand.empty()


@pytest.mark.parametrize(("time_s", "made"), [(1.5, 0), (2.5, 1)])
def test_the_loss_of_the_prefill_engine_before_the_kv_has_left(time_s, made):
    stand = Stand(TRANSFER)
    stand.generate(0.0)
    stand.lose(time_s, 0)
    lost = EngineLost(engine=0, incarnation=0, commands=(0,), saved_tokens=(made,))
    assert stand.run() == [(time_s, lost)]
    assert stand.empty()


@pytest.mark.parametrize(("kv_return", "time_s"), [(RECOMPUTE, 5.5), (TRANSFER, 5.5), (TRANSFER, 7.03125)])
def test_the_loss_of_the_prefill_engine_after_that_does_not_harm_the_turn(kv_return, time_s):
    stand = Stand(kv_return)
    stand.generate(0.0)
    stand.lose(time_s, 0)
    stand.run()
    assert [type(event).__name__ for _, event in stand.events] == ["EngineLost", "TurnGenerated"]
    assert stand.events[0][1].commands == ()
    assert stand.events[1][1].output_tokens == 5
