"""Reads a request log of any known format; the first line says which one it is."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.loadtest.azure import HEADER, read_azure
from rollart.loadtest.engine_log import read_engine_log
from rollart.loadtest.mooncake import read_mooncake
from rollart.loadtest.requests import RequestLog
from rollart.workload.trace_reader import read_lines

_KNOWN = (
    "an engine's log (JSON lines with input_toks, output_toks, queued_ts, first_token_ts, last_token_ts), "
    f"an Azure trace (CSV with {','.join(HEADER)}) or a Mooncake trace (JSON lines with timestamp, input_length, "
    "output_length, hash_ids)"
)


def read_requests(path: Path, *, limit: int | None = None) -> RequestLog:
    """The log, or its first `limit` requests in the order of the file; TraceError where it is none of the formats."""
    reader = _reader_of(path)
    return reader(path, limit)


def _reader_of(path: Path) -> Callable[[Path, int | None], RequestLog]:
    for line in read_lines(path):
        if not line.strip():
            continue
        if not line.lstrip().startswith(b"{"):
            if line.decode(errors="replace").strip().split(",") == list(HEADER):
                return read_azure
            break
        try:
            keys = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError as error:
            raise TraceError(f"{path}:1: is not a JSON object: {error}") from error
        if "input_toks" in keys:
            return read_engine_log
        if "input_length" in keys:
            return read_mooncake
        break
    else:
        raise TraceError(f"{path}: is empty; must be {_KNOWN}")
    raise TraceError(f"{path}: the first line fits no known format; must be {_KNOWN}")
