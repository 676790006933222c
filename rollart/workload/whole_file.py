"""Reads a file whose format cannot be streamed, up to a bound."""

from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.trace_reader import check_text, open_binary, translated_errors

MAX_FILE_BYTES = 1 << 30


def read_whole(path: Path) -> bytes:
    """The content, unpacked if it is gzip; TraceError if it is empty, binary, damaged or over 1 GiB."""
    with translated_errors(path), open_binary(path) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if not content:
        raise TraceError(f"{path}: is empty")
    if len(content) > MAX_FILE_BYTES:
        raise TraceError(f"{path}: unpacks to more than {MAX_FILE_BYTES >> 30} GiB; split it")
    check_text(path, content)
    return content
