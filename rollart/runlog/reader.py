"""Reads run logs, window by window."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rollart.domain.errors import RunLogError
from rollart.runlog.header import SCHEMA_VERSION, RunHeader
from rollart.runlog.parquet import HEADER_KEY, VERSION_KEY, window_at
from rollart.runlog.schema import Record
from rollart.runlog.window import Window

_MAGIC = b"PAR1"


def read_header(path: Path) -> RunHeader:
    """The header of a run log. Raises RunLogError."""
    with _open(path) as file:
        return _header(path, file)


def records(path: Path) -> Iterator[tuple[int, float, Record]]:
    """(seq, time_s, record) in order of seq. Raises RunLogError."""
    for window in windows(path):
        yield from window.in_order()


def windows(path: Path) -> Iterator[Window]:
    """The windows as they were written. Raises RunLogError."""
    with _open(path) as file:
        _header(path, file)
        first_seq = 0
        for group in range(file.num_row_groups):
            window = _window(path, file, group)
            highest = max(int(batch.seq[-1]) for batch in window.batches.values())
            if (window.first_seq, highest) != (first_seq, first_seq + len(window) - 1):
                raise RunLogError(f"{path}: records are missing after number {first_seq}; write the run again")
            yield window
            first_seq += len(window)


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise RunLogError(f"{path}: there is no run log; give a run directory that a finished run wrote") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise RunLogError(f"{path}: {_broken(path)}") from error


def _broken(path: Path) -> str:
    if path.is_dir():
        return "is a folder, not a run log; give the Parquet file in it"
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as unreadable:
        return f"cannot be read ({unreadable.strerror}); give a run log that is readable"
    if begins == _MAGIC:
        return "is truncated or damaged: its end does not parse as Parquet; write the run again"
    return f"is not a Parquet file (begins with {begins!r}, not {_MAGIC!r}); give a run log"


def _header(path: Path, file: pq.ParquetFile) -> RunHeader:
    metadata = file.schema_arrow.metadata or {}
    version = metadata.get(VERSION_KEY)
    if version is None:
        raise RunLogError(f"{path}: is a Parquet file but not a run log: it has no {VERSION_KEY.decode()}")
    if version != str(SCHEMA_VERSION).encode():
        raise RunLogError(
            f"{path}: has schema version {version.decode(errors='replace')}, this RollArt reads {SCHEMA_VERSION}; "
            "read it with the version that wrote it"
        )
    try:
        return msgspec.json.decode(metadata[HEADER_KEY], type=RunHeader)
    except (KeyError, msgspec.MsgspecError) as error:
        raise RunLogError(f"{path}: the header is broken ({error}); write the run again") from error


def _window(path: Path, file: pq.ParquetFile, group: int) -> Window:
    try:
        return window_at(file, group)
    except (pa.ArrowException, OSError, KeyError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise RunLogError(f"{path}: row group {group} cannot be read ({reason}); write the run again") from error
