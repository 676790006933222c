"""Messages over a socket of their own, both ends in this process."""

import asyncio
import socket
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.wire import KEY_BYTES, Exchange, Line, call

ANSWER_S = 20
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def run(work):
    return asyncio.run(asyncio.wait_for(work, ANSWER_S))


class Pair:
    """An exchange with one line, both ends of it."""

    def __init__(self, closing=tuple):
        self.closing = closing

    async def __aenter__(self):
        self.exchange = await Exchange.opened("127.0.0.1")
        answered = asyncio.get_running_loop().create_future()
        self.line = self.exchange.line(answered.set_result)
        self.caller = await call(self.line, self.closing)
        self.driver = await answered
        return self

    async def __aexit__(self, *_):
        self.caller.close()
        self.driver.close()
        self.exchange.close()


async def take(wire, count):
    """So many messages, and in how many frames they came."""
    found, frames = [], 0
    while len(found) < count:
        found += await wire.receive()
        frames += 1
    return found, frames


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(DATA, max_size=4), min_size=1, max_size=20))
def test_what_is_posted_arrives_as_it_was_and_in_order(messages):
    async def work():
        async with Pair() as pair:
            for message in messages:
                pair.driver.post(message)
            return await take(pair.caller, len(messages))

    assert run(work()) == (messages, 1), "what is posted in one go travels in one frame"


def test_both_ends_talk_at_once_and_every_go_of_the_loop_is_a_frame():
    async def work():
        async with Pair() as pair:
            for number in range(200):
                pair.driver.post(("down", number))
                pair.caller.post(("up", number))
                if number % 10 == 9:
                    await asyncio.sleep(0)
            return await take(pair.caller, 200), await take(pair.driver, 200)

    (down, frames_down), (up, frames_up) = run(work())
    assert down == [["down", number] for number in range(200)]
    assert up == [["up", number] for number in range(200)]
    assert (frames_down, frames_up) == (20, 20)


def test_a_frame_of_many_megabytes_arrives_whole():
    prompt = list(range(3_000_000))

    async def work():
        async with Pair() as pair:
            pair.driver.post(("turn", 1, "t", prompt, 5))
            return await pair.caller.receive()

    assert run(work()) == [["turn", 1, "t", prompt, 5]]


def test_every_frame_ends_with_what_the_sender_always_says():
    told = iter(range(10))

    async def work():
        async with Pair(lambda: [("reading", next(told))]) as pair:
            pair.caller.post(("a",))
            pair.caller.post(("b",))
            first = await pair.driver.receive()
            pair.caller.post(("c",))
            return first, await pair.driver.receive()

    assert run(work()) == ([["a"], ["b"], ["reading", 0]], [["c"], ["reading", 1]])


def test_a_turn_travels_as_its_fields():
    turn = Turn([1], [-0.1234567890123], [3], True, 16, 0, 0, 0.1, 0.2, 0.3)

    async def work():
        async with Pair() as pair:
            pair.caller.post(("turn", 7, turn))
            return await pair.driver.receive()

    ((_, command, fields),) = run(work())
    assert (command, Turn(*fields)) == (7, turn)


def test_what_is_no_data_is_refused_where_it_is_posted_and_holds_up_nothing():
    async def work():
        async with Pair() as pair:
            with pytest.raises(TypeError, match="object"):
                pair.driver.post(("turn", object()))
            pair.driver.post(("turn", 1))
            return await pair.caller.receive()

    assert run(work()) == [["turn", 1]]


@pytest.mark.parametrize("end", ["caller", "driver"])
def test_the_end_of_one_end_is_told_to_the_other(end):
    async def work():
        async with Pair() as pair:
            gone, left = (pair.caller, pair.driver) if end == "caller" else (pair.driver, pair.caller)
            gone.close()
            with pytest.raises((EOFError, OSError)):
                await left.receive()

    run(work())


@pytest.mark.parametrize("greeting", [b"", b"short", bytes(KEY_BYTES), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_who_has_no_key_is_sent_away(greeting):
    async def work():
        exchange = await Exchange.opened("127.0.0.1")
        connected = []
        line = exchange.line(connected.append)
        reader, writer = await asyncio.open_connection(line.host, line.port)
        writer.write(greeting)
        writer.write_eof()
        answer = b""
        with suppress(ConnectionError):
            answer = await reader.read()
        writer.close()
        exchange.close()
        return answer, connected

    assert run(work()) == (b"", [])


def test_a_key_is_good_for_one_call():
    async def work():
        async with Pair() as pair:
            second = await call(pair.line)
            with pytest.raises((EOFError, OSError)):
                await second.receive()
            second.close()
            pair.driver.post(("still", "there"))
            return await pair.caller.receive()

    assert run(work()) == [["still", "there"]]


def test_a_line_that_is_forgotten_connects_nobody():
    async def work():
        exchange = await Exchange.opened("127.0.0.1")
        connected = []
        line = exchange.line(connected.append)
        exchange.forget(line)
        wire = await call(line)
        with pytest.raises((EOFError, OSError)):
            await wire.receive()
        wire.close()
        exchange.close()
        return connected

    assert run(work()) == []


def test_it_listens_where_it_is_told_and_no_longer_than_it_is_open():
    async def work():
        exchange = await Exchange.opened("127.0.0.1")
        line = exchange.line(lambda _: None)
        addresses = [found.getsockname() for found in exchange._server.sockets]
        exchange.close()
        await asyncio.sleep(0)
        with pytest.raises(OSError, match=r"refused|failed"):
            await call(line)
        return addresses, line.port

    addresses, port = run(work())
    assert addresses == [("127.0.0.1", port)]


def test_nobody_answers_where_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        line = Line("127.0.0.1", taken.getsockname()[1], bytes(KEY_BYTES))
        with pytest.raises(OSError, match=r"refused|failed"):
            run(call(line))
