"""Reward functions over HTTP, on loopback."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("aiohttp")

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episode, Generated
from rollart.exec.real.rewards.function import RemoteReward
from rollart.exec.real.rewards.http import HttpService
from rollart.exec.real.rewards.scoring import RewardFailure
from rollart.exec.real.tokens import Characters

pytestmark = pytest.mark.filterwarnings("default")


class Judge(BaseHTTPRequestHandler):
    """Answers as its server is told."""

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.release.wait(5.0)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    made.asked, made.status, made.answer, made.release = [], 200, b'{"reward": 0.75}', threading.Event()
    made.release.set()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.release.set()
    made.shutdown()
    thread.join()
    made.server_close()


def score(server, timeout_s=5.0, **task):
    async def ask():
        execution = TaskExecution(
            task="t", environment="e", reward=f"http://127.0.0.1:{server.server_port}/score", **task
        )
        characters = Characters(64)
        episode = Episode(task="t", group=0, start_version=0, reward=0.5)
        episode.observe(characters.observation("#1", first=True))
        said = characters.observation("23", first=False)
        episode.generated(Generated(tokens=said, logprobs=[0.0] * 2, versions=[0] * 2))
        service = HttpService(execution)
        try:
            return await RemoteReward(service, characters, execution.reward_concurrency).score(episode, timeout_s)
        finally:
            await service.close()

    return asyncio.run(ask())


def test_the_function_sees_the_dialogue_and_gives_a_number(server):
    assert score(server) == 0.75
    assert server.asked == [{"task": "t", "text": "#123", "answer": "23", "earned": 0.5}]


@pytest.mark.parametrize(
    ("status", "answer"),
    [(500, b'{"reward": 1}'), (200, b"garbage"), (200, b'{"reward": "1"}'), (200, b'{"reward": NaN}'), (200, b"[1]")],
    ids=["error", "no json", "text", "not finite", "no mapping"],
)
def test_whatever_is_no_number_is_a_failure(server, status, answer):
    server.status, server.answer = status, answer
    with pytest.raises(RewardFailure) as raised:
        score(server)
    assert raised.value.cause is Cause.ERROR


def test_a_late_answer_is_a_time_out(server):
    server.release.clear()
    with pytest.raises(RewardFailure) as raised:
        score(server, timeout_s=0.2)
    assert raised.value.cause is Cause.TIMEOUT


def test_a_secret_must_be_there(server, monkeypatch):
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(ScenarioError, match="environment variable NO_SUCH_TOKEN is not set"):
        score(server, reward_secret="NO_SUCH_TOKEN")
