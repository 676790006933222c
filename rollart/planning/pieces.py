"""Long measurements in pieces: each result is on disk as soon as it is there, and is not made again.

A file has a configuration and results by key. A run that is begun again with the same configuration keeps all results
and goes on; with another one it is refused, so that no file mixes two measurements.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollart.domain.errors import OutputError
from rollart.report.output import write_text


class Pieces:
    """The results of one file; a run begins nothing new after so many `minutes` of processor time.

    `version` is that of the code that makes the results.

    Raises OutputError where the file has another configuration.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], *, version: str, minutes: float = float("inf")) -> None:
        self._path = path
        self._config: dict[str, Any] = json.loads(json.dumps(config))
        self._version = version
        self._ends_s = time.process_time() + 60.0 * minutes
        self.results: dict[str, dict[str, Any]] = {}
        """Key -> result, in the order of their making."""
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found.get("config") != self._config:
                raise OutputError(f"{path}: made with {found.get('config')}, not {self._config}; move it away first")
            self.results = found["results"]

    def wanted(self, key: str) -> bool:
        """Whether a result is to be made now: it is not there, and there is time."""
        return key not in self.results and time.process_time() < self._ends_s

    def put(self, key: str, result: Mapping[str, Any]) -> None:
        """Keep a result, at once."""
        self.results[key] = {**result, "code_version": self._version}
        self.write({})

    def write(self, summary: Mapping[str, Any]) -> None:
        """The file, with what the results come to."""
        content = {"config": self._config, "summary": summary, "results": self.results}
        write_text(self._path, json.dumps(content, indent=1, allow_nan=False) + "\n")
