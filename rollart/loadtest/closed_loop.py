"""A closed loop: a number of requests is kept in flight; where one ends the next one comes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollart.domain.errors import InputError
from rollart.loadtest.open_loop import LoadedEngine, Served, latency_of
from rollart.loadtest.requests import Latency
from rollart.serving import Request
from rollart.workload.chance import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is kept in flight. Raises InputError where a figure makes no sense.

    Lengths are fixed at `input_tokens` and `output_tokens`, or where `length_range` is below 1 drawn uniformly from
    `length_range` times the nominal to the nominal, each for itself.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int
    requests: int
    length_range: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("concurrency", "input_tokens", "output_tokens", "requests"):
            if getattr(self, name) < 1:
                raise InputError(f"load {name} is {getattr(self, name)}; it must be at least 1")
        if not 0 < self.length_range <= 1:
            raise InputError(f"load length_range is {self.length_range}; it must be in (0, 1]")

    def lengths(self) -> Iterator[tuple[int, int]]:
        """Tokens in and out of each request."""
        if self.length_range == 1.0:
            for _ in range(self.requests):
                yield self.input_tokens, self.output_tokens
            return
        chance = Chance(self.seed, "load", "lengths")
        least_in, least_out = (max(1, int(n * self.length_range)) for n in (self.input_tokens, self.output_tokens))
        for number in range(self.requests):
            draw = chance.at(number)
            tokens_in = int(draw.integers(least_in, self.input_tokens, endpoint=True))
            yield tokens_in, int(draw.integers(least_out, self.output_tokens, endpoint=True))


def keep_in_flight(load: Load, engines: Sequence[LoadedEngine]) -> Served:
    """Run the load to its end; the requests are dealt to the engines in turn, and follow each other there.

    Raises CapacityError for a request that an engine could not even run alone.
    """
    lengths = enumerate(load.lengths())
    latencies: list[Latency | None] = [None] * load.requests
    for slot in range(load.concurrency):
        if not _send_next(lengths, engines[slot % len(engines)], 0.0):
            break
    wakes, last_s, left = 0, 0.0, load.requests
    while left:
        engine = min(engines, key=lambda engine: engine.next_wake)
        wakes += 1
        for completion in engine.advance(engine.next_wake):
            left -= 1
            last_s = completion.time_s
            latencies[completion.request_id] = latency_of(completion)
            _send_next(lengths, engine, last_s)
    return Served([met for met in latencies if met is not None], last_s, wakes)


def _send_next(lengths: Iterator[tuple[int, tuple[int, int]]], engine: LoadedEngine, now: float) -> bool:
    """Submit the next request there is; False where there is none."""
    for number, (tokens_in, tokens_out) in lengths:
        request = Request(request_id=number, chain=number, context_tokens=tokens_in, output_tokens=tokens_out)
        engine.submit(request, now)
        return True
    return False
