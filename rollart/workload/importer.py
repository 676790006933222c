"""The interface of a reader of foreign formats."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from rollart.workload.trace import TraceTrajectory


class Importer(Protocol):
    """Reads one foreign format; a new one is one class in one file, and an entry of `importers.IMPORTERS`."""

    @property
    def format(self) -> str:
        """Name of the format, as a user types it."""
        ...

    @property
    def about(self) -> str:
        """One line: what files these are."""
        ...

    def read(self, path: Path) -> Iterator[TraceTrajectory]:
        """Trajectories of a file; TraceError, in one line, if the file is not of this format."""
        ...
