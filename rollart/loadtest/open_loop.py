"""An open loop: requests arrive at their recorded times, whatever the engines do."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Protocol

from rollart.loadtest.requests import Latency, RequestLog, TimedRequest
from rollart.serving import Completion, Request


class LoadedEngine(Protocol):
    """What a loop needs of an engine."""

    next_wake: float

    @property
    def running(self) -> int:
        """Requests that have been admitted."""

    @property
    def waiting(self) -> int:
        """Requests that have not been admitted yet."""

    def submit(self, request: Request, now: float) -> None:
        """Hand over a request."""

    def advance(self, now: float) -> list[Completion]:
        """Run up to `now` and return what completed."""


class Served(NamedTuple):
    """What all requests met, in their order, and what it took to find out."""

    latencies: list[Latency]
    duration_s: float
    """From the first arrival to the last token."""
    wakes: int
    """How often an engine was woken, arrivals not counted."""


def replay(log: RequestLog, engines: Sequence[LoadedEngine]) -> Served:
    """Send every request at its time to the engine with the fewest requests, the first of equals.

    Raises CapacityError for a request that an engine could not even run alone.
    """
    fleet = _Fleet(engines, len(log.requests))
    for number, timed in enumerate(log.requests):
        fleet.run_before(timed.arrival_s)
        fleet.least_loaded().submit(_request(number, timed), timed.arrival_s)
    fleet.run_before(inf)
    latencies = [met for met in fleet.latencies if met is not None]
    assert len(latencies) == len(log.requests)
    return Served(latencies, fleet.last_s - log.requests[0].arrival_s, fleet.wakes)


class _Fleet:
    """Engines that run side by side up to a moment."""

    def __init__(self, engines: Sequence[LoadedEngine], requests: int) -> None:
        self.engines = engines
        self.latencies: list[Latency | None] = [None] * requests
        self.last_s = 0.0
        self.wakes = 0

    def run_before(self, moment_s: float) -> None:
        """Run all engines up to what they do at the moment itself, so that all arrivals of a moment come first."""
        for engine in self.engines:
            while engine.next_wake < moment_s:
                self.wakes += 1
                for completion in engine.advance(engine.next_wake):
                    self.latencies[completion.request_id] = latency_of(completion)
                    if completion.time_s > self.last_s:
                        self.last_s = completion.time_s

    def least_loaded(self) -> LoadedEngine:
        """The engine with the fewest requests, waiting or running."""
        if len(self.engines) == 1:
            return self.engines[0]
        return min(self.engines, key=lambda engine: engine.running + engine.waiting)


def latency_of(completion: Completion) -> Latency:
    """What the engine says of a request, as its client sees it."""
    last_s = completion.first_token_s + completion.decode_s
    return Latency(completion.first_token_s, last_s, completion.output_tokens)


def _request(number: int, timed: TimedRequest) -> Request:
    return Request(
        request_id=number,
        chain=number,
        context_tokens=timed.input_tokens,
        output_tokens=timed.output_tokens,
        prefix=timed.prefix,
    )
