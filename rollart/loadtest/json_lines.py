"""JSON lines as checked records; a bad line is an error that names it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.trace_reader import read_lines

Record = TypeVar("Record", bound=msgspec.Struct)


def read_records(path: Path, kind: type[Record], limit: int | None) -> Iterator[tuple[int, Record]]:
    """Line numbers and records of the first `limit` lines that are not blank; TraceError at the first bad one."""
    decode = msgspec.json.Decoder(kind).decode
    lines = ((number, line) for number, line in enumerate(read_lines(path), start=1) if line.strip())
    for number, line in islice(lines, limit):
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"{path}:{number}: {error}") from error
