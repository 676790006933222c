"""A driver's mailbox and the outbox of an actor, over a real wire; Ray is a stand-in."""

import asyncio
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

pytest.importorskip("ray")

from ray.exceptions import RayError

from rollart.domain.errors import StartError
from rollart.exec.real import mailbox as module
from rollart.exec.real.mailbox import Mailbox, Outbox
from rollart.exec.real.wire import Exchange

ANSWER_S = 20


class Actor:
    """What answers `echo` by what it was told, and dies when the test says so."""

    def __init__(self):
        self.outbox = Outbox(lambda: [("reading", len(self.taken))])
        self.taken = []
        self.died = asyncio.get_running_loop().create_future()
        self.may_call = asyncio.Event()
        self.may_call.set()
        self.serve = SimpleNamespace(remote=self._serve)

    def take(self, message):
        self.taken.append(message)
        self.outbox.post(("echo", *message))

    async def _serve(self, line):
        work = asyncio.create_task(self._work(line))
        await asyncio.wait([work, self.died], return_when=asyncio.FIRST_COMPLETED)
        work.cancel()
        if self.died.done():
            self.died.result()

    async def _work(self, line):
        await self.may_call.wait()
        await self.outbox.serve(line, self.take)


class Bench:
    """One actor and its mailbox, and what came of them."""

    async def __aenter__(self):
        self.exchange = await Exchange.opened("127.0.0.1")
        self.actor = Actor()
        self.received, self.lost, self.failed = [], [], []
        self.mailbox = self.box(self.actor)
        return self

    async def __aexit__(self, *_):
        self.mailbox.kill()
        self.exchange.close()

    def box(self, actor):
        return Mailbox(actor, self.exchange, self.received.append, self.lost.append, self.failed.append)

    async def until(self, condition):
        async with asyncio.timeout(ANSWER_S):
            while not condition():
                await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def killed(monkeypatch):
    """Actors that Ray was told to kill."""
    found = []
    monkeypatch.setattr(module.ray, "kill", found.append)
    return found


def bench(work):
    async def within():
        async with Bench() as made:
            return await work(made)

    return asyncio.run(within())


def test_what_is_said_before_the_call_is_carried_out_first():
    async def work(bench):
        bench.actor.may_call.clear()
        bench.mailbox.post(("a", 1))
        bench.actor.outbox.post(("early",))
        await asyncio.sleep(0.01)
        assert bench.received == []
        bench.mailbox.post(("b", 2))
        bench.actor.may_call.set()
        await bench.until(lambda: len(bench.actor.taken) == 2)
        bench.mailbox.post(("c", 3))
        await bench.until(lambda: ["echo", "c", 3] in bench.received)
        return bench.actor.taken, [message for message in bench.received if message[0] != "reading"]

    taken, received = bench(work)
    assert taken == [["a", 1], ["b", 2], ["c", 3]]
    assert received == [["early"], ["echo", "a", 1], ["echo", "b", 2], ["echo", "c", 3]]


def test_who_waits_for_the_call_is_told_of_it_or_of_the_end():
    async def work(bench):
        bench.actor.may_call.clear()
        assert not bench.mailbox.connected.done()
        bench.actor.may_call.set()
        await asyncio.wait_for(bench.mailbox.connected, ANSWER_S)
        other = Actor()
        other.may_call.clear()
        mailbox = bench.box(other)
        other.died.set_exception(RayError("gone"))
        with pytest.raises(RayError, match="gone"):
            await asyncio.wait_for(mailbox.connected, ANSWER_S)
        return bench.lost

    assert bench(work) == ["gone"]


def test_a_driver_that_cannot_be_reached_is_named():
    async def work(bench):
        bench.exchange.close()
        await asyncio.sleep(0)
        line = bench.mailbox._line
        with pytest.raises(StartError, match=rf"cannot be reached at 127.0.0.1:{line.port} .*any port"):
            await Outbox().serve(line, bench.received.append)

    bench(work)


def test_counters_come_with_every_batch():
    async def work(bench):
        bench.mailbox.post(("a",))
        bench.mailbox.post(("b",))
        await bench.until(lambda: len(bench.received) == 3)
        return bench.received

    assert bench(work) == [["echo", "a"], ["echo", "b"], ["reading", 2]]


@pytest.mark.parametrize("how", ["the process dies", "the wire breaks", "it hangs up", "it dies before it calls"])
def test_a_lost_actor_is_told_once_and_made_sure_of(how, killed):
    async def work(bench):
        if how == "it dies before it calls":
            bench.actor.may_call.clear()
        else:
            bench.mailbox.post(("a",))
            await bench.until(lambda: bench.received)
        if how == "the wire breaks":
            bench.mailbox._wire._writer.transport.abort()
        elif how == "it hangs up":
            bench.actor.died.set_result(None)
        else:
            bench.actor.died.set_exception(RayError("gone"))
        await bench.until(lambda: bench.lost)
        seen = list(bench.received)
        bench.mailbox.post(("b",))
        await asyncio.sleep(0.02)
        assert bench.received == seen, "nothing is received any more"
        return len(bench.lost), bench.mailbox.closed, len(killed)

    assert bench(work) == (1, True, 1)


def test_a_box_that_is_closed_by_a_message_hands_on_no_other():
    async def work(bench):
        bench.mailbox._received = lambda message: (bench.received.append(message), bench.mailbox.kill())
        bench.mailbox.post(("a",))
        bench.mailbox.post(("b",))
        await bench.until(lambda: bench.received)
        await asyncio.sleep(0.02)
        return bench.received, bench.lost

    assert bench(work) == ([["echo", "a"]], [])


@pytest.mark.parametrize("error", [KeyError("a"), OSError("no space")], ids=repr)
def test_what_is_raised_over_a_message_is_told_and_is_no_loss(error):
    async def work(bench):
        bench.mailbox._received = Mock(side_effect=error)
        bench.mailbox.post(("a",))
        await bench.until(lambda: bench.failed)
        return bench.failed, bench.lost

    assert bench(work) == ([error], [])


def test_what_is_raised_over_a_loss_is_told():
    error = KeyError("a")

    async def work(bench):
        bench.mailbox._lost = Mock(side_effect=error)
        bench.actor.died.set_exception(RayError("gone"))
        await bench.until(lambda: bench.failed)
        return bench.failed

    assert bench(work) == [error]


def test_a_process_that_calls_a_closed_box_finds_nobody():
    async def work(bench):
        bench.actor.may_call.clear()
        bench.mailbox.kill()
        line = bench.mailbox._line
        await asyncio.wait_for(bench.actor.outbox.serve(line, bench.actor.take), ANSWER_S)
        return bench.actor.taken

    assert bench(work) == []
