"""Writes a trace file: complete under its name, or not at all."""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

import msgspec

from rollart.domain.errors import OutputError
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_reader import decode_line
from rollart.workload.whole_output import replacing


def write_trace(path: Path, trajectories: Iterable[TraceTrajectory]) -> int:
    """Write one line per trajectory, gzip where the name ends in .gz; returns how many.

    Every line is read back before it is written, so the file holds exactly what was given. OutputError when a
    trajectory breaks the schema or the file cannot be written; an existing file then stays as it was.
    """
    with replacing(path) as file:
        return _write_lines(file, path, trajectories)


def encode_line(trajectory: TraceTrajectory) -> bytes:
    """One line without its end; ValueError if it would not read back as the same trajectory."""
    line = msgspec.json.encode(trajectory)
    if decode_line(line) != trajectory:
        raise ValueError("holds a value that JSON cannot hold, such as NaN")
    return line


def _write_lines(file: IO[bytes], path: Path, trajectories: Iterable[TraceTrajectory]) -> int:
    if path.suffix != ".gz":
        return _write_plain(file, path, trajectories)
    # No time stamp in the header: the same trace gives the same bytes.
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        return _write_plain(cast(IO[bytes], packed), path, trajectories)


def _write_plain(file: IO[bytes], path: Path, trajectories: Iterable[TraceTrajectory]) -> int:
    count = 0
    for count, trajectory in enumerate(trajectories, start=1):
        try:
            file.write(encode_line(trajectory) + b"\n")
        except ValueError as error:
            raise OutputError(f"{path}: trajectory {count} cannot be written: {error}") from error
    return count
