"""Imports files of foreign formats: finds the files, chooses the reader, counts what is bad, numbers the members.

A bad record (a line, an element of a list, a document) is named and left out, and stops a strict import. A file
that is broken as a whole, or of another format, stops every import: what comes before the fault would be a
trace of part of the file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.importers.episode import Episode
from rollart.workload.importers.files import find_files
from rollart.workload.importers.format_reader import FormatReader, ImportJob
from rollart.workload.importers.formats import AUTO, READERS, recognise, reject_other_formats
from rollart.workload.importers.sample import NoTextError, look
from rollart.workload.importers.tokens import DEFAULT_TOKENS, token_counter
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_errors import explain_line

_ERRORS_KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a user may choose."""

    format: str
    """Name of a format, or "auto"."""
    tokens: str = DEFAULT_TOKENS
    """Name of the estimate for texts without token counts."""
    task: str | None = None
    """Name of the task; None: as the format has it."""
    strict: bool = False
    """The first bad record is a TraceError."""


class TraceImport:
    """Iterates over the trajectories of foreign files; counts are complete once it is exhausted."""

    def __init__(self, files: Sequence[Path], options: ImportOptions) -> None:
        """TraceError for a format that is not known, InputError for an estimate that is not."""
        if options.format != AUTO and options.format not in READERS:
            known = ", ".join((AUTO, *sorted(READERS)))
            raise TraceError(f"format {options.format!r} is not known; known are {known}")
        self._options = options
        self._given = tuple(files)
        self._count = token_counter(options.tokens)
        self._readers: dict[str, FormatReader] = {}
        self._members: dict[int, int] = {}
        """Of a group, by the digest of its name: how many were read."""
        self._shared_tokens: dict[int, int] = {}
        self._seen: set[int] = set()
        """Digests of what was read: names would take ten times the memory."""
        self.trajectories = 0
        self.bad_records = 0
        self.errors: list[str] = []
        """Messages of the first bad records, such as "log.jsonl:17: reward is NaN; must be a finite number"."""
        self.formats: Counter[str] = Counter()
        """Files read of each format."""
        self.left_out: list[Path] = []
        """Files in given folders that are of no format that was asked for."""

    @property
    def unusable(self) -> Counter[str]:
        """Episodes that are no trajectories, by the reason: they are not bad, but do not say what must be known."""
        return sum((reader.left_out for reader in self._readers.values()), Counter())

    def __iter__(self) -> Iterator[TraceTrajectory]:
        files = find_files(self._given)
        self._job = ImportJob(files=tuple(path for path, _ in files), count=self._count)
        for path, from_folder in files:
            reader = self._reader_for(path, from_folder)
            if reader is None:
                self.left_out.append(path)
                continue
            self.formats[reader.format] += 1
            yield from self._read_file(path, reader)
        self._check_any()

    def _reader_for(self, path: Path, from_folder: bool) -> FormatReader | None:
        try:
            sample = look(path)
        except NoTextError:
            if from_folder:
                return None
            raise
        name = self._options.format
        if name == AUTO:
            found = recognise(sample)
            if found is None and not from_folder:
                raise TraceError(f"{path}: is of no format that is known; name it: {', '.join(sorted(READERS))}")
            if found is None:
                return None
            name = found
        elif not READERS[name].recognises(sample):
            if from_folder:
                return None
            reject_other_formats(path, sample, name)
        if name not in self._readers:
            self._readers[name] = READERS[name](self._job)
        return self._readers[name]

    def _read_file(self, path: Path, reader: FormatReader) -> Iterator[TraceTrajectory]:
        file = reader.open(path)
        for record in reader.records(path):
            place = f"{path}{record.place}"
            if record.content is None:
                self._refuse(place, record.problem)
                continue
            try:
                for episode in file.read(record.content):
                    yield self._trajectory(episode)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._refuse(place, explain_line(record.content, error))
            except ValueError as error:
                self._refuse(place, str(error))
        rest = iter(file.finish())
        while True:
            try:
                episode = next(rest)
                yield self._trajectory(episode)
            except StopIteration:
                return
            except ValueError as error:
                self._refuse(str(path), str(error))

    def _trajectory(self, episode: Episode) -> TraceTrajectory:
        """The episode as a numbered member of its group; ValueError for a duplicate."""
        if self._options.task is not None:
            episode = replace(episode, task=self._options.task)
        found = episode.trajectory(0) if episode.alone else self._numbered(episode)
        self.trajectories += 1
        return found

    def _numbered(self, episode: Episode) -> TraceTrajectory:
        group = _digest(episode.task, episode.group)
        read = self._members.get(group, 0)
        member = read if episode.member is None else episode.member
        this = _digest(episode.task, episode.identity or f"{episode.group}\0{member}")
        if this in self._seen:
            named = episode.identity or f"member {member} of group {episode.group}"
            raise ValueError(f"{named[:80]} of task {episode.task} was read before; ids must not repeat")
        found = episode.trajectory(member, self._shared_tokens.get(group))
        self._seen.add(this)
        if found.turns:
            self._shared_tokens.setdefault(group, found.prompt_tokens)
        self._members[group] = read + 1
        return found

    def _refuse(self, place: str, message: str) -> None:
        text = f"{place}: {' '.join(message.split())}"
        if self._options.strict:
            raise TraceError(text)
        self.bad_records += 1
        if len(self.errors) < _ERRORS_KEPT:
            self.errors.append(text)

    def _check_any(self) -> None:
        if self.trajectories:
            return
        if self.errors:
            raise TraceError(f"{self.errors[0]} (none of {self.bad_records} records is good)")
        if self.left_out:
            raise TraceError(f"{self.left_out[0].parent}: has no file of a known format among {len(self.left_out)}")
        raise TraceError(f"{self._given[0]}: holds no record")


def _digest(task: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{task}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest())
