"""Requests with arrival times, and what each of them met: measured where a log says so, or simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rollart.domain.errors import TraceError


class Latency(NamedTuple):
    """What one request met, in seconds since it reached the engine."""

    first_token_s: float
    last_token_s: float
    output_tokens: int

    @property
    def per_token_s(self) -> float | None:
        """Mean time between two output tokens; None where there is one token only."""
        gaps = self.output_tokens - 1
        return (self.last_token_s - self.first_token_s) / gaps if gaps else None


class TimedRequest(NamedTuple):
    """One request of a log. `prefix` names its leading blocks: equal names in a row are equal tokens."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    prefix: tuple[int, ...] = ()
    measured: Latency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """Requests in the order of their arrival, the first at 0 s; times are either measured for all or for none."""

    name: str
    requests: Sequence[TimedRequest]
    prefix_tokens: int = 0
    """Tokens of one block that a `prefix` names; 0 where the log names none."""

    def __post_init__(self) -> None:
        if not self.requests:
            raise TraceError(f"{self.name}: holds no request")

    @property
    def measured(self) -> list[Latency]:
        """The measured latencies, in order; empty where the log has none."""
        return [request.measured for request in self.requests if request.measured is not None]

    def first(self, count: int) -> "RequestLog":
        """The log of the requests that came first."""
        return RequestLog(name=self.name, requests=self.requests[:count], prefix_tokens=self.prefix_tokens)


def in_order(requests: list[TimedRequest]) -> list[TimedRequest]:
    """Sorted by arrival, which then counts from the first one."""
    requests.sort(key=lambda request: request.arrival_s)
    if not requests:
        return requests
    origin_s = requests[0].arrival_s
    return [request._replace(arrival_s=request.arrival_s - origin_s) for request in requests]
