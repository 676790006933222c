"""How a file falls into records: lines, a whole document, elements of a JSON list, members of an archive.

All read in pieces and hold one record at a time. A record that is too long is named and skipped, not read.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rollart.domain.errors import TraceError
from rollart.workload.importers.json_elements import ElementSplitter
from rollart.workload.trace_reader import check_text, open_binary, translated_errors

MAX_RECORD_BYTES = 32 << 20
"""A longer record would not fit twice, as text and decoded, into the memory that an import may take."""
MAX_DOCUMENT_BYTES = 256 << 20
"""Of formats with one trajectory a file."""
_PIECE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """One record; `place` follows the file's name in messages. Without content, `problem` says why."""

    place: str
    content: bytes | None
    problem: str = ""


def lines(path: Path) -> Iterator[Record]:
    """Lines that are not blank; TraceError if the file is empty, binary or cut off."""
    with translated_errors(path), open_binary(path) as file:
        number = 0
        while line := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
                check_text(path, line)
            if len(line) > MAX_RECORD_BYTES:
                size = len(line)
                while piece := file.readline(_PIECE_BYTES):
                    size += len(piece)
                    if piece.endswith(b"\n"):
                        break
                yield Record(f":{number}", None, _too_long("line", size, MAX_RECORD_BYTES))
            elif line.strip():
                yield Record(f":{number}", line)
        if not number:
            raise TraceError(f"{path}: is empty")


def document(path: Path) -> Iterator[Record]:
    """The whole file as one record."""
    with translated_errors(path), open_binary(path) as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if not content.strip():
        raise TraceError(f"{path}: is empty")
    check_text(path, content)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise TraceError(f"{path}: {_too_long('document', len(content), MAX_DOCUMENT_BYTES)}")
    yield Record("", content.removeprefix(_BYTE_ORDER_MARK))


def elements(path: Path, key: str | None = None) -> Iterator[Record]:
    """Elements of the list that the file is, or that its top object has under `key`.

    TraceError if there is no such list, or the file ends within it.
    """
    splitter = ElementSplitter(key, MAX_RECORD_BYTES)
    with translated_errors(path), open_binary(path) as file:
        started = False
        number = 0
        while piece := file.read(_PIECE_BYTES):
            if not started:
                check_text(path, piece)
                piece = piece.removeprefix(_BYTE_ORDER_MARK)
                started = True
            for content in splitter.feed(piece):
                problem = "" if content is not None else _too_long("record", None, MAX_RECORD_BYTES)
                yield Record(f": record {number}", content, problem)
                number += 1
        if not started:
            raise TraceError(f"{path}: is empty")
    if not splitter.complete:
        where = "" if key is None else f" under {key!r}"
        problem = f"is cut off after {number} records" if splitter.began else f"holds no JSON list{where}"
        raise TraceError(f"{path}: {problem}; must be a whole list of records")


def archive_members(path: Path, prefix: str) -> Iterator[Record]:
    """Members of a zip archive under `prefix`, in the order of their names."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.infolist(), key=lambda found: found.filename):
                if not member.filename.startswith(prefix) or member.is_dir():
                    continue
                place = f": {member.filename}"
                if member.file_size > MAX_DOCUMENT_BYTES:
                    yield Record(place, None, _too_long("member", member.file_size, MAX_DOCUMENT_BYTES))
                else:
                    yield Record(place, archive.read(member))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise TraceError(f"{path}: zip archive is damaged or cut off: {error}; copy the file again") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error


def _too_long(what: str, size: int | None, limit: int) -> str:
    shown = "" if size is None else f" ({size / (1 << 20):.0f} MiB)"
    return f"{what} is longer than {limit >> 20} MiB{shown}; must hold one trajectory"
