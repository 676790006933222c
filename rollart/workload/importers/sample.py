"""The start of a file, looked at before any reader is chosen."""

import re
from dataclasses import dataclass
from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.trace_reader import check_text, open_binary, translated_errors

SAMPLE_BYTES = 128 << 10
_ZIP_MAGIC = b"PK\x03\x04"
_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*:)?|[{}\[\]]', re.DOTALL)


class NoTextError(TraceError):
    """A file that is empty, or holds no text: in a folder it is something else than a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the first 128 KiB of a file hold."""

    name: str
    first_line: str
    """Without its end; empty for an archive."""
    is_zip: bool
    is_list: bool
    """The first JSON value is a list."""
    keys: frozenset[str]
    """Keys of top-level objects, or of the objects in a top-level list; also of later lines."""

    def has(self, *keys: str) -> bool:
        """Whether all keys are there."""
        return self.keys.issuperset(keys)


def look(path: Path) -> Sample:
    """The sample of a file; NoTextError if it is empty or no text, TraceError if it cannot be read."""
    with translated_errors(path), path.open("rb") as file:
        if file.read(4) == _ZIP_MAGIC:
            return Sample(name=path.name, first_line="", is_zip=True, is_list=False, keys=frozenset())
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
    return Sample(
        name=path.name, first_line=first_line, is_zip=False, is_list=is_list, keys=_outer_keys(start, is_list)
    )


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
