"""Outcomes of simulations on disk, by name: a search that is repeated or interrupted does not pay twice.

One SQLite file, which several processes may use at once. An outcome is written as soon as it is there. A file that
cannot be used is an OutputError: it names the file, which may be deleted at any time.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rollart.domain.errors import OutputError
from rollart.sched.placement.trial import Outcome

FOLDER_VARIABLE = "ROLLART_CACHE"
"""Environment variable with the folder of the memory; `~/.cache/rollart` where it is not set."""
_WAIT_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS outcomes (name TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID"


def default_path() -> Path:
    """Where outcomes are remembered unless a user says otherwise."""
    folder = os.environ.get(FOLDER_VARIABLE)
    cache = Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollart"
    return cache / "simulations.sqlite"


class Memory:
    """Remembers outcomes in a file; the file and its folder are made at the first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def get(self, name: str) -> Outcome | None:
        """The outcome of this name, or None where there is none."""
        with self._open() as connection:
            row = connection.execute("SELECT outcome FROM outcomes WHERE name = ?", (name,)).fetchone()
        return None if row is None else _outcome(row[0])

    def put(self, name: str, outcome: Outcome) -> None:
        """Remember an outcome at once."""
        with self._open() as connection, connection:
            connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?)", (name, json.dumps(asdict(outcome))))

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = sqlite3.connect(self._path, timeout=_WAIT_S)
                self._connection.execute(_TABLE)
            yield self._connection
        except (sqlite3.Error, OSError) as error:
            raise OutputError(
                f"{self._path}: cannot remember simulations: {error}; delete it, or set {FOLDER_VARIABLE} to another "
                "folder"
            ) from error


def _outcome(text: str) -> Outcome:
    raw = json.loads(text)
    return Outcome(
        step_s=tuple(raw["step_s"]), cost=tuple(raw["cost"]), trajectories=raw["trajectories"], failure=raw["failure"]
    )
