"""An environment server on loopback."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from rollart.exec.real.environments.protocol import Action
from rollart.exec.real.environments.shipped import make_environment


class Echo(BaseHTTPRequestHandler):
    """Answers as it is told by its server."""

    def do_POST(self):
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, content, self.headers.get("Authorization")))
        answer = self.server.answers[self.path]
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    made = HTTPServer(("127.0.0.1", 0), Echo)
    made.asked, made.answers = [], {"/reset": {"session": 7, "text": "hello"}, "/close": {}}
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_an_episode_over_http(server, monkeypatch):
    monkeypatch.setenv("TOKEN_OF_TEST", "s3cret")
    server.answers["/step"] = {"text": [1, 2], "reward": 0.5, "done": True}
    url = f"http://127.0.0.1:{server.server_port}"
    remote = make_environment("remote", {"url": url, "secret": "TOKEN_OF_TEST"})
    assert remote.reset(3, 1).text == "hello"
    last = remote.step(Action(text="go", tokens=[]))
    assert (last.text, last.reward, last.done) == ([1, 2], 0.5, True)
    remote.close()
    assert server.asked == [
        ("/reset", {"seed": 3, "member": 1}, "Bearer s3cret"),
        ("/step", {"session": 7, "action": "go"}, "Bearer s3cret"),
        ("/close", {"session": 7}, "Bearer s3cret"),
    ]


@pytest.mark.parametrize(
    "answer", [b"garbage", {"text": 5}, [1], {"text": "x", "reward": "much"}], ids=["no json", "text", "list", "reward"]
)
def test_a_wrong_answer_is_an_error(server, answer):
    server.answers["/step"] = answer
    remote = make_environment("remote", {"url": f"http://127.0.0.1:{server.server_port}"})
    remote.reset(0, 0)
    with pytest.raises(ValueError):
        remote.step(Action(text="go", tokens=[]))
