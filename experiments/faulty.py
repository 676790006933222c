"""What `recovery.py` makes go wrong: an environment that hangs and a reward function that fails, when they are told."""

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rollart.exec.real.environments.protocol import Action, Observation
from rollart.exec.real.environments.shipped import make_environment

FOREVER_S = 3600.0


class Hanging:
    """An environment one step of which hangs as soon as a file is there; whoever takes the file away hangs."""

    def __init__(self, *, environment: str, flag: str) -> None:
        self._inner = make_environment(environment, {})
        self._flag = Path(flag)

    def reset(self, seed: int, member: int) -> Observation:
        """Begin an episode."""
        return self._inner.reset(seed, member)

    def step(self, action: Action) -> Observation:
        """Act, or hang."""
        with suppress(FileNotFoundError):
            self._flag.unlink()
            time.sleep(FOREVER_S)
        return self._inner.step(action)

    def close(self) -> None:
        """Close the environment."""
        self._inner.close()


class FlakyReward:
    """A reward function on loopback; it gives what the environment gave, and fails once when it is told to."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.fails = threading.Event()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def fail(self) -> None:
        """Answer the next request with an error."""
        self._server.fails.set()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        """Answer one request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        failed = self.server.fails.is_set()
        self.server.fails.clear()
        content = json.dumps({"reward": request["earned"]}).encode()
        self.send_response(500 if failed else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
