"""One engine in time; an iteration takes 1 s and a prompt token 1/64 s."""

from functools import partial

import pytest

from rollart.domain.commands import ResumeEngine, SuspendEngine, UpdateEngine, WeightSource
from rollart.domain.events import EngineResumed, EngineSuspended, EngineUpdated
from rollart.modelled.engine_worker import EngineWorker
from rollart.serving.config import EngineConfig
from rollart.serving.request import Request
from tests.modelled.toys import ToyCosts
from tests.sim.runs import Bench


class Stand(Bench):
    """An engine alone."""

    def __init__(self, **config):
        super().__init__()
        settings = {"max_num_seqs": 8, "max_num_batched_tokens": 8192, "kv_blocks": 1024, **config}
        costs = ToyCosts(overhead_s=1.0, token_s=1 / 64)
        self.worker = EngineWorker(3, EngineConfig(**settings), costs, self.clock, self.report)
        self.done = []
        self.made = []

    def submit(self, time_s, number, *, context=64, output=3):
        request = Request(request_id=number, chain=number, context_tokens=context, output_tokens=output)
        self.at(time_s, lambda: self.worker.submit(request, partial(self._completed, f"payload {number}")))

    def _completed(self, payload, completion):
        self.done.append((self.clock.now, completion.request_id, payload))

    def suspend(self, time_s, command, *, release_s=0.0, incarnation=0):
        order = SuspendEngine(id=command, engine=3, incarnation=incarnation, release_memory=release_s > 0)
        self.at(time_s, lambda: self.worker.suspend(order, release_s))

    def update(self, time_s, command, duration_s, *, incarnation=0):
        order = UpdateEngine(id=command, engine=3, incarnation=incarnation, version=1, source=WeightSource.BROADCAST)
        self.at(time_s, lambda: self.worker.update(order, duration_s))

    def resume(self, time_s, command, *, incarnation=0):
        order = ResumeEngine(id=command, engine=3, incarnation=incarnation)
        self.at(time_s, lambda: self.worker.resume(order))

    def abort(self, time_s, number):
        self.at(time_s, lambda: self.made.append(self.worker.abort(number)))

    def kill(self, time_s):
        self.at(time_s, lambda: self.made.append(self.worker.kill()))

    def start(self, time_s, incarnation):
        self.at(time_s, lambda: self.worker.start(incarnation))


def test_a_request_takes_its_prefill_and_an_iteration_for_each_further_token():
    stand = Stand()
    stand.submit(1.0, 0)
    stand.run()
    assert stand.done == [(1.0 + 2.0 + 2.0, 0, "payload 0")]


def test_requests_of_one_moment_share_iterations():
    stand = Stand()
    stand.submit(0.0, 0)
    stand.submit(0.0, 1, output=5)
    stand.run()
    assert stand.done == [(5.0, 0, "payload 0"), (7.0, 1, "payload 1")]


def test_a_request_that_arrives_within_an_iteration_joins_the_next():
    stand = Stand()
    stand.submit(0.0, 0, output=100)
    stand.submit(9.5, 1, output=1)
    stand.run()
    # The iteration of 9 s to 10 s ends, the next has 64 prompt tokens; 92 iterations of 1 s are left of 100 tokens.
    assert stand.done == [(12.0, 1, "payload 1"), (102.0, 0, "payload 0")]


def test_a_suspension_lets_the_running_iteration_end():
    stand = Stand()
    stand.submit(0.0, 0)
    stand.suspend(2.5, 10)
    stand.resume(7.25, 11)
    assert stand.run() == [(3.0, EngineSuspended(command_id=10)), (7.25, EngineResumed(command_id=11))]
    assert stand.done == [(8.25, 0, "payload 0")]


def test_an_idle_engine_suspends_at_once_and_gives_memory_back_in_time():
    stand = Stand()
    stand.suspend(1.0, 10)
    stand.resume(2.0, 11)
    stand.suspend(3.0, 12, release_s=0.75)
    stand.run()
    assert stand.answers() == [
        (1.0, "EngineSuspended", 10),
        (2.0, "EngineResumed", 11),
        (3.75, "EngineSuspended", 12),
    ]


def test_a_suspended_engine_takes_requests_and_starts_none():
    stand = Stand()
    stand.suspend(0.0, 10)
    stand.submit(1.0, 0, output=1)
    stand.resume(5.0, 11)
    stand.run()
    assert stand.done == [(7.0, 0, "payload 0")]


def test_an_update_computes_what_is_in_flight_again():
    stand = Stand()
    stand.submit(0.0, 0)
    stand.suspend(2.5, 10)
    stand.update(4.0, 11, 1.5)
    stand.resume(6.0, 12)
    assert stand.run()[1] == (5.5, EngineUpdated(command_id=11, version=1))
    # Two tokens are made by 3 s; prompt and both of them, 66 tokens, are computed again and make the third.
    assert stand.done == [(6.0 + 1.0 + 66 / 64, 0, "payload 0")]
    assert stand.worker.usage()[-1].updated_tokens == 65


def test_a_killed_engine_saves_the_tokens_it_has_made():
    stand = Stand()
    stand.submit(0.0, 0, output=10)
    stand.submit(5.5, 1, output=10)
    stand.kill(5.75)
    stand.run()
    # Prefill until 2 s makes one, then one a second; the second request has not begun.
    assert stand.made == [{0: 4, 1: 0}]
    assert stand.done == []
    assert stand.worker.usage()[-1].busy_s == 5.75


def test_a_dead_engine_answers_nothing():
    stand = Stand()
    stand.submit(0.0, 0)
    stand.suspend(2.25, 10, release_s=1.0)
    stand.update(2.25, 11, 1.0)
    stand.kill(2.5)
    stand.resume(2.5, 12)
    assert stand.run() == []


def test_a_new_incarnation_starts_suspended_and_empty():
    stand = Stand()
    stand.submit(0.0, 0)
    stand.kill(2.5)
    stand.start(10.0, 1)
    stand.submit(11.0, 1, output=1)
    stand.resume(12.0, 20, incarnation=1)
    stand.run()
    assert stand.answers() == [(12.0, "EngineResumed", 20)]
    assert stand.done == [(14.0, 1, "payload 1")]
    assert [(usage.prefill_tokens, usage.busy_s) for usage in stand.worker.usage()] == [(64, 2.5), (64, 2.0)]


def test_an_order_to_an_earlier_incarnation_is_not_answered():
    stand = Stand()
    stand.update(0.0, 10, 5.0, incarnation=0)
    stand.kill(1.0)
    stand.start(2.0, 1)
    assert stand.run() == []


def test_an_abort_tells_the_tokens_made():
    stand = Stand()
    stand.submit(0.0, 0, output=10)
    stand.submit(0.0, 1, output=10)
    stand.abort(6.5, 0)
    stand.run()
    # Both prompts, 128 tokens, are there at 3 s, with a token each; then one a second.
    assert stand.made == [4]
    assert stand.done == [(12.0, 1, "payload 1")]


def test_a_completion_of_the_same_moment_comes_before_the_abort():
    stand = Stand()
    stand.abort(4.0, 0)
    stand.submit(0.0, 0)
    stand.run()
    assert (stand.done, stand.made) == ([(4.0, 0, "payload 0")], [0])


def test_an_abort_of_what_is_not_there_makes_nothing():
    stand = Stand()
    stand.abort(1.0, 99)
    stand.run()
    assert stand.made == [0]


def test_a_wake_that_an_abort_made_stale_does_nothing():
    stand = Stand()
    stand.submit(0.0, 0, output=50)
    stand.abort(1.5, 0)
    stand.submit(200.0, 1, output=1)
    stand.run()
    assert stand.done == [(202.0, 1, "payload 1")]
    assert stand.worker.usage()[-1].busy_s == pytest.approx(2.0 + 2.0)


def test_what_completes_together_has_left_before_the_first_is_told():
    stand = Stand()
    inside = []
    for number in (0, 1):
        request = Request(request_id=number, chain=number, context_tokens=64, output_tokens=2)
        stand.at(
            0.0,
            lambda request=request: stand.worker.submit(
                request, lambda _: inside.append((0 in stand.worker, 1 in stand.worker))
            ),
        )
    stand.run()
    assert inside == [(False, False), (False, False)]


def test_updates_are_installed_in_the_order_in_which_they_were_ordered():
    stand = Stand()
    stand.update(0.0, 10, 20.0)
    stand.update(5.0, 11, 2.0)
    stand.update(30.0, 12, 2.0)
    stand.run()
    assert stand.answers() == [
        (20.0, "EngineUpdated", 10),
        (22.0, "EngineUpdated", 11),
        (32.0, "EngineUpdated", 12),
    ]
