"""The traces of Mooncake: JSON lines with milliseconds, lengths, and an id for each 512 tokens of the prompt.

An id stands for its block and all that lies before it, so equal ids are equal prefixes. Nothing is measured.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from rollart.domain.errors import TraceError
from rollart.loadtest.json_lines import read_records
from rollart.loadtest.requests import RequestLog, TimedRequest, in_order

PREFIX_TOKENS = 512
"""Tokens of one id; the last id of a prompt may stand for fewer."""

_Count = Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    timestamp: Annotated[float, msgspec.Meta(ge=0)]
    input_length: _Count
    output_length: _Count
    hash_ids: tuple[int, ...]


def read_mooncake(path: Path, limit: int | None) -> RequestLog:
    """The requests of a Mooncake trace; TraceError where ids and length do not belong together."""
    requests = []
    for number, line in read_records(path, _Line, limit):
        blocks = -(-line.input_length // PREFIX_TOKENS)
        if len(line.hash_ids) > blocks:
            raise TraceError(
                f"{path}:{number}: {len(line.hash_ids)} hash_ids for {line.input_length} tokens; "
                f"must be {blocks} at most, one for each {PREFIX_TOKENS}"
            )
        arrival_s = line.timestamp / 1000
        requests.append(TimedRequest(arrival_s, line.input_length, line.output_length, line.hash_ids))
    return RequestLog(name=path.name, requests=in_order(requests), prefix_tokens=PREFIX_TOKENS)
