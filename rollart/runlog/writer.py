"""Writes a run log while the run goes on, and hands its windows to the sinks.

A log is complete or absent: records go to a temporary file beside `path`, which takes its place on `close`.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import msgspec

from rollart.domain.commands import Command
from rollart.domain.errors import OutputError
from rollart.domain.events import Event
from rollart.runlog.header import RunHeader
from rollart.runlog.parquet import HEADER_KEY, VERSION_KEY, open_writer, table_of
from rollart.runlog.samples import Sample
from rollart.runlog.schema import ABSENT, Record
from rollart.runlog.window import Window, window_of

FILE_NAME = "runlog.parquet"
"""Name of the log within a run directory."""

WINDOW_RECORDS = 65_536
"""Large enough that a row group's fixed cost vanishes, small enough that a window stays in tens of MB."""


class Sink(Protocol):
    """Something that reads a run while it goes on."""

    def consume(self, window: Window) -> None:
        """Take the next records; windows come in order and without gaps."""


class RunLogWriter:
    """The log of one run; a context manager that discards the log when its block raises."""

    def __init__(
        self,
        path: Path | None,
        header: RunHeader,
        sinks: Sequence[Sink] = (),
        *,
        window_records: int = WINDOW_RECORDS,
    ) -> None:
        """`path` is the Parquet file; None writes no file and only feeds the sinks. Raises OutputError."""
        self._path = path
        self._part = None if path is None else path.with_name(f"{path.name}.part")
        self._sinks = tuple(sinks)
        self._window_records = window_records
        self._first_seq = 0
        self._next_seq = 0
        # Three parallel lists: a tuple per record would cost twice as much and wake the garbage collector.
        self._times_s: list[float] = []
        self._causes: list[int] = []
        self._records: list[Record] = []
        self._file = None
        if self._part is not None:
            with self._failing_output():
                self._part.parent.mkdir(parents=True, exist_ok=True)
                metadata = {
                    VERSION_KEY: str(header.schema_version).encode(),
                    HEADER_KEY: msgspec.json.encode(header, order="sorted"),
                }
                self._file = open_writer(str(self._part), metadata)

    def event(self, time_s: float, event: Event) -> int:
        """Log an event; its sequence number is the cause of the commands that answer it."""
        seq = self._next_seq
        if seq - self._first_seq >= self._window_records:
            # Before the event, so that its commands share its window.
            self.flush()
        self._next_seq = seq + 1
        self._times_s.append(time_s)
        self._causes.append(ABSENT)
        self._records.append(event)
        return seq

    def commands(self, time_s: float, commands: Sequence[Command], cause_seq: int) -> None:
        """Log what the controller ordered when it handled the event `cause_seq`."""
        count = len(commands)
        self._next_seq += count
        if count == 1:
            # By far the most frequent: a turn or an environment step follows from the other.
            self._times_s.append(time_s)
            self._causes.append(cause_seq)
            self._records.append(commands[0])
            return
        self._times_s.extend([time_s] * count)
        self._causes.extend([cause_seq] * count)
        self._records.extend(commands)

    def sample(self, time_s: float, sample: Sample) -> None:
        """Log a reading of counters."""
        self._next_seq += 1
        self._times_s.append(time_s)
        self._causes.append(ABSENT)
        self._records.append(sample)

    def flush(self) -> None:
        """Hand over what is buffered as one window. Raises OutputError."""
        if not self._records:
            return
        window = window_of(self._first_seq, self._times_s, self._causes, self._records)
        self._first_seq = self._next_seq
        self._times_s.clear()
        self._causes.clear()
        self._records.clear()
        if self._file is not None:
            for batch in window.batches.values():
                batch.gather()
        for sink in self._sinks:
            sink.consume(window)
        if self._file is not None:
            with self._failing_output():
                self._file.write_table(table_of(window), row_group_size=len(window))

    def close(self) -> None:
        """Write the rest and put the file in its place; a second call does nothing. Raises OutputError."""
        self.flush()
        if self._file is None:
            return
        assert self._part is not None and self._path is not None
        with self._failing_output():
            self._file.close()
            with self._part.open("rb+") as written:
                os.fsync(written.fileno())
            self._part.replace(self._path)
        self._file = None

    def discard(self) -> None:
        """Leave nothing behind; an earlier log at `path` stays."""
        file, self._file = self._file, None
        if file is not None and self._part is not None:
            # The footer of a file that is thrown away may fail to fit on a full disk.
            with contextlib.suppress(OSError):
                file.close()
            self._part.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """The writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close after success, discard after an exception."""
        if kind is None:
            self.close()
        else:
            self.discard()

    @contextlib.contextmanager
    def _failing_output(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            reason = error.strerror or str(error).splitlines()[0]
            raise OutputError(f"run log {self._path}: {reason}; give a folder that is writable and has room") from error
