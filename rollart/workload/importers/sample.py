"""The start of a file, looked at before any reader is chosen."""

import re
from dataclasses import dataclass
from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.trace_reader import check_text, open_binary, translated_errors

SAMPLE_BYTES = 128 << 10
_ZIP_MAGIC = b"PK\x03\x04"
_PARQUET_MAGIC = b"PAR1"
_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*:)?|[{}\[\]]', re.DOTALL)


class NoTextError(TraceError):
    """A file that is empty, or holds no text: in a folder it is something else than a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the first 128 KiB of a file hold."""

    name: str
    first_line: str
    """Without its end; empty for what is no text."""
    is_zip: bool = False
    is_parquet: bool = False
    is_list: bool = False
    """The first JSON value is a list."""
    keys: frozenset[str] = frozenset()
    """Keys of top-level objects, or of the objects in a top-level list, also of later lines."""
    columns: frozenset[str] = frozenset()
    """Of a Parquet file."""

    @property
    def is_binary(self) -> bool:
        """Whether it is no text."""
        return self.is_zip or self.is_parquet

    def has(self, *keys: str) -> bool:
        """Whether all keys are there."""
        return self.keys.issuperset(keys)


def look(path: Path) -> Sample:
    """The sample of a file; NoTextError if it is empty or no text, TraceError if it cannot be read."""
    with translated_errors(path), path.open("rb") as file:
        magic = file.read(4)
    if magic == _ZIP_MAGIC:
        return Sample(name=path.name, first_line="", is_zip=True)
    if magic == _PARQUET_MAGIC:
        return Sample(name=path.name, first_line="", is_parquet=True, columns=_columns(path))
    with translated_errors(path), open_binary(path) as file:
        start = file.read(SAMPLE_BYTES)
    if not start.strip():
        raise NoTextError(f"{path}: is empty")
    try:
        check_text(path, start)
    except TraceError as error:
        raise NoTextError(str(error)) from error
    first_line = start.partition(b"\n")[0].decode("utf-8", "replace").strip().removeprefix("\ufeff")
    is_list = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
    return Sample(name=path.name, first_line=first_line, is_list=is_list, keys=_outer_keys(start, is_list))


def _columns(path: Path) -> frozenset[str]:
    # Parquet takes longer to load than most recordings take to read.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return frozenset(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path}: Parquet file is damaged or cut off; copy the file again") from error


def _outer_keys(text: bytes, is_list: bool) -> frozenset[str]:
    """Keys of objects at the top, or in the top list, of JSON that may be cut off anywhere."""
    found = set()
    depth = 0
    outer = 2 if is_list else 1
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        elif depth == outer and token.group(2):
            found.add(token.group(1).decode("utf-8", "replace"))
    return frozenset(found)
