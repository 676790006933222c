"""The log of a real engine: JSON lines with the moments of each request.

    request_id, input_toks, output_toks, arrival_time, queued_ts, scheduled_ts, first_token_ts, last_token_ts

`arrival_time` is a wall clock of the client, the other four are one monotonic clock of the engine; so only their
differences compare. A request reaches the engine at `queued_ts`, and its latencies count from there.
"""

from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec

from rollart.domain.errors import TraceError
from rollart.loadtest.json_lines import read_records
from rollart.loadtest.requests import Latency, RequestLog, TimedRequest, in_order

_MOST_DRIFT_S = 1.0
"""Wall and engine clock may lie any time apart, but by the same for all requests but for what the client's way
into the engine takes; the logs at hand differ by 0.11 s at most."""

_Count = Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    request_id: str
    input_toks: _Count
    output_toks: _Count
    queued_ts: float
    scheduled_ts: float
    first_token_ts: float
    last_token_ts: float
    arrival_time: float | None = None


def read_engine_log(path: Path, limit: int | None) -> RequestLog:
    """The requests of an engine's log with what they met; TraceError where the moments contradict each other."""
    requests = []
    least_s, most_s = float("inf"), float("-inf")
    for number, line in read_records(path, _Line, limit):
        _check_moments(f"{path}:{number}", line)
        if line.arrival_time is not None:
            offset_s = line.arrival_time - line.queued_ts
            least_s, most_s = min(least_s, offset_s), max(most_s, offset_s)
            if most_s - least_s > _MOST_DRIFT_S:
                raise TraceError(
                    f"{path}:{number}: the clocks disagree: arrival_time less queued_ts is {offset_s:.3f} s here and "
                    f"{most_s if offset_s == least_s else least_s:.3f} s before; it may vary by {_MOST_DRIFT_S:g} s"
                )
        met = Latency(line.first_token_ts - line.queued_ts, line.last_token_ts - line.queued_ts, line.output_toks)
        requests.append(TimedRequest(line.queued_ts, line.input_toks, line.output_toks, (), met))
    return RequestLog(name=path.name, requests=in_order(requests))


def _check_moments(place: str, line: _Line) -> None:
    names = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
    for earlier, later in pairwise(names):
        before, after = getattr(line, earlier), getattr(line, later)
        if not before <= after:
            raise TraceError(
                f"{place}: the clocks disagree: {later} {after} is before {earlier} {before}; both must be of one "
                "monotonic clock"
            )
