"""The interface of a reader of foreign formats, and what it is told.

A format is one class in one file, and an entry of `IMPORTERS`. It says how a file falls into records (lines,
elements of a list, members of an archive), and turns records into episodes. It neither counts bad records nor
numbers members nor writes: `TraceImport` does that for all formats alike.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.records import Record, lines
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportJob:
    """What all files of one import have in common."""

    files: tuple[Path, ...]
    count: TokenCounter
    """Estimate of a text's tokens."""


class RecordReader(Protocol):
    """Reads the records of one file, in order."""

    def read(self, record: bytes) -> Iterable[Episode]:
        """Episodes that are complete with this record; ValueError or msgspec.DecodeError if it is bad."""
        ...

    def finish(self) -> Iterable[Episode]:
        """Episodes that only the end of the file completes."""
        ...


class EachRecord:
    """Reader of a file whose records stand for themselves."""

    def __init__(self, episodes: Callable[[bytes], Iterable[Episode]]) -> None:
        self.read = episodes

    def finish(self) -> Iterable[Episode]:
        """Nothing is left."""
        return ()


class FormatReader(ABC):
    """One foreign format, for one import."""

    format: ClassVar[str]
    """Name of the format, as a user types it."""
    about: ClassVar[str]
    """One line: what files these are."""

    def __init__(self, job: ImportJob) -> None:
        self.job = job
        self.left_out: Counter[str] = Counter()
        """Episodes that are no trajectories, by the reason; nothing is wrong with their records."""

    @staticmethod
    @abstractmethod
    def recognises(sample: Sample) -> bool:
        """Whether the start of a file looks like this format."""

    def records(self, path: Path) -> Iterator[Record]:
        """Records of a file; TraceError if it is broken as a whole. Here: its lines."""
        return lines(path)

    @abstractmethod
    def open(self, path: Path) -> RecordReader:
        """A reader for the records of one file."""
