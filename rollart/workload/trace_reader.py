"""Streams a trace file, plain or gzip, in bounded memory.

Bad lines are counted and named, not fatal, unless the reader is strict. A file that is broken as a whole
(empty, binary, cut-off gzip, a line without end, not one good line) is a TraceError.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.trace import ShortFormTrajectory, TraceTrajectory
from rollart.workload.trace_errors import explain_line

MAX_LINE_BYTES = 16 << 20
"""A trajectory of 100,000 turns takes 8 MB; a longer line means that the file is no trace."""
_ERRORS_KEPT = 20
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TraceReader:
    """Iterates over the good trajectories of a file; counts are complete once it is exhausted."""

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """`strict`: the first bad line is a TraceError."""
        self.path = path
        self.strict = strict
        self.good_lines = 0
        self.bad_lines = 0
        self.errors: list[str] = []
        """Messages of the first bad lines, such as "trace.jsonl:17: turns[0].output_tokens is -1; ..."."""

    def __iter__(self) -> Iterator[TraceTrajectory]:
        self.good_lines, self.bad_lines, self.errors = 0, 0, []
        for number, line in enumerate(read_lines(self.path), start=1):
            if not line.strip():
                continue
            try:
                trajectory = decode_line(line)
            except ValueError as error:
                self._refuse(number, str(error))
                continue
            self.good_lines += 1
            yield trajectory
        self._check_any_good()

    def _refuse(self, number: int, message: str) -> None:
        named = f"{self.path}:{number}: {message}"
        if self.strict:
            raise TraceError(named)
        self.bad_lines += 1
        if len(self.errors) < _ERRORS_KEPT:
            self.errors.append(named)

    def _check_any_good(self) -> None:
        if self.good_lines:
            return
        if not self.bad_lines:
            raise TraceError(f"{self.path}: is empty; a trace has one JSON object a line")
        raise TraceError(f"{self.errors[0]} (none of {self.bad_lines} lines is good)")


_decode = msgspec.json.Decoder(TraceTrajectory).decode
_decode_short_form = msgspec.json.Decoder(ShortFormTrajectory).decode
_NO_PROMPT = "missing required field `prompt_tokens`"


def decode_line(line: bytes) -> TraceTrajectory:
    """Decode and check one line; ValueError names the key, the value and what would be right."""
    try:
        try:
            return _decode(line)
        except msgspec.ValidationError as error:
            if _NO_PROMPT not in str(error):
                raise
            return _decode_short_form(line).normalised()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(explain_line(line, error)) from error


def read_lines(path: Path) -> Iterator[bytes]:
    """Lines of a text file, plain or gzip, whatever its name; TraceError if it is broken as a whole."""
    with translated_errors(path), open_binary(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
                check_text(path, line)
            if len(line) > MAX_LINE_BYTES:
                size = f"{MAX_LINE_BYTES >> 20} MiB"
                raise TraceError(f"{path}:{number}: line is longer than {size}; must be one trajectory")
            yield line


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Turn what the system and gzip raise about a file into one TraceError."""
    try:
        yield
    except EOFError as error:
        raise TraceError(f"{path}: gzip stream is cut off; copy the file again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: gzip stream is damaged: {error}") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error


def open_binary(path: Path) -> BinaryIO:
    """Open for reading; gzip is recognised by its first two bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP_MAGIC
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def check_text(path: Path, start: bytes) -> None:
    """TraceError unless the first bytes are UTF-8 text."""
    sample = start[:4096]
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        cut_off = len(start) > len(sample) and error.start >= len(sample) - 3
        if not cut_off:
            raise TraceError(
                f"{path}: is not UTF-8 text (byte 0x{sample[error.start]:02x} at {error.start}); "
                "a trace is JSON lines in UTF-8, plain or gzip"
            ) from error
    if b"\0" in sample:
        raise TraceError(f"{path}: is binary or UTF-16; a trace is JSON lines in UTF-8, plain or gzip")
