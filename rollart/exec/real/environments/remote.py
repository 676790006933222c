"""An environment on a server: three POST requests with JSON in and out.

POST {url}/reset {"seed", "member"} -> {"session", "text"}; POST {url}/step {"session", "action"} -> {"text", "reward",
"done"}; POST {url}/close {"session"} -> anything. `text` may be a list of token ids. An error of the server or the
network is the environment's failure, and what follows is the controller's decision.
"""

import json
import os
import urllib.request
from contextlib import suppress
from typing import Any

from rollart.exec.real.environments.protocol import Action, Observation

MOST_BYTES = 16_000_000
"""Of an answer that is read."""


class Remote:
    """One session on an environment server."""

    def __init__(self, *, url: str, timeout_s: float = 60.0, secret: str | None = None) -> None:
        """`secret`: environment variable with a bearer token."""
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}; must begin with http:// or https://")
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json"}
        if secret is not None:
            if not os.environ.get(secret):
                raise ValueError(f"the environment variable {secret} is not set")
            self._headers["Authorization"] = f"Bearer {os.environ[secret]}"
        self._session: Any = None

    def reset(self, seed: int, member: int) -> Observation:
        """Begin a session; the one before it ends."""
        self.close()
        answer = self._post("reset", {"seed": seed, "member": member})
        self._session = answer.get("session")
        return _observation(answer)

    def step(self, action: Action) -> Observation:
        """Act."""
        return _observation(self._post("step", {"session": self._session, "action": action.text}))

    def close(self) -> None:
        """End the session, if the server still listens."""
        if self._session is not None:
            session, self._session = self._session, None
            with suppress(OSError, ValueError):
                self._post("close", {"session": session})

    def _post(self, verb: str, content: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._url}/{verb}", json.dumps(content).encode(), self._headers)
        with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
            answer = json.loads(response.read(MOST_BYTES) or b"{}")
        if not isinstance(answer, dict):
            raise ValueError(f"{verb}: the server answers {str(answer)[:100]}; must be a mapping")
        return answer


def _observation(answer: dict[str, Any]) -> Observation:
    text: Any = answer.get("text")
    reward, done = answer.get("reward", 0.0), answer.get("done", False)
    is_ids = isinstance(text, list) and all(isinstance(each, int) for each in text)
    if not (isinstance(text, str) or is_ids):
        raise ValueError(f"the server's text is {str(text)[:100]}; must be text or a list of token ids")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise ValueError(f"the server's reward is {str(reward)[:100]}; must be a number")
    return Observation(text=text, reward=float(reward), done=bool(done))
