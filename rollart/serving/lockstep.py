"""Ranks of one engine that share their experts: data parallel in attention, every iteration in step.

Each rank schedules its own requests; an iteration of all ranks starts together and ends together, since the experts
of a layer wait for the tokens of every rank. A rank without work takes part all the same. One wake-up is one
iteration: which rank holds the others up changes from one to the next, so no closed form covers many of them.

A new request goes to the rank with the least `4 * waiting + running`, as vLLM's coordinator deals them. Aborts,
suspension and weight updates are not modelled here.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Protocol

from rollart.domain.errors import InvariantError
from rollart.serving.config import EngineConfig
from rollart.serving.counters import Counters
from rollart.serving.request import Completion, Request, check_request, completion_of
from rollart.serving.scheduler import Scheduler

_WAITING_WEIGHT = 4


class RankWork(NamedTuple):
    """What one rank computes in an iteration; as the arguments of `EngineCosts.mixed_s`."""

    batch: int
    context_tokens: int
    chunks: Sequence[tuple[int, int]]


class LockstepCosts(Protocol):
    """Iteration times of ranks in step."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose KV one rank can hold."""

    def iteration_s(self, ranks: Sequence[RankWork]) -> float:
        """An iteration of all ranks, of which one at least has work."""


class LockstepEngine:
    """Several ranks as one engine: `submit` requests, and `advance` at `next_wake`."""

    def __init__(self, config: EngineConfig, costs: LockstepCosts, ranks: int) -> None:
        self.config = config
        self.next_wake = inf
        self._costs = costs
        self._ranks = [_Rank(config) for _ in range(ranks)]
        self._stepping = False
        self._start_s = 0.0

    @property
    def running(self) -> int:
        """Requests that have been admitted, over all ranks."""
        return sum(len(rank.scheduler.running) for rank in self._ranks)

    @property
    def waiting(self) -> int:
        """Requests that have been submitted but not admitted, over all ranks."""
        return sum(rank.waiting for rank in self._ranks)

    def submit(self, request: Request, now: float) -> None:
        """Hand over a new request. Raises CapacityError when a rank could not even run it alone."""
        if now > self.next_wake:
            raise InvariantError(f"lockstep engine: told of {now} s, but it was due at {self.next_wake} s")
        check_request(request, self.config.kv_capacity_tokens)
        request.submitted_s = now
        min(self._ranks, key=_Rank.load).arrivals.append(request)
        if not self._stepping:
            self.next_wake = min(self.next_wake, now)

    def advance(self, now: float) -> list[Completion]:
        """Run up to `now` and return what completed, in order of time, rank and admission."""
        done: list[Completion] = []
        while (time := self.next_wake) <= now and time != inf:
            if self._stepping:
                self._end(time, done)
            self._start(time)
        return done

    def _end(self, now: float, done: list[Completion]) -> None:
        lag = self.config.scheduling_lag
        for rank in self._ranks:
            for request in rank.scheduler.end_iterations(1, now):
                rank.scheduler.retire(request, lag > 0)
                done.append(completion_of(request, now))

    def _start(self, now: float) -> None:
        """Compose an iteration of every rank; one that was idle sees all arrivals, as nothing was composed ahead."""
        lag = self.config.scheduling_lag and self._stepping
        works = [rank.compose(now, self._start_s if lag and rank.busy else inf) for rank in self._ranks]
        if not any(work.batch or work.chunks for work in works):
            # What the late view left out is all there is now.
            works = [rank.compose(now, inf) for rank in self._ranks]
        self._stepping = any(work.batch or work.chunks for work in works)
        self._start_s = now
        self.next_wake = now + self._costs.iteration_s(works) if self._stepping else inf
        if not self._stepping and self.waiting:
            raise InvariantError(f"lockstep engine: {self.waiting} requests wait at {now} s and none can run")


class _Rank:
    """One scheduler and what it has not seen yet."""

    def __init__(self, config: EngineConfig) -> None:
        self.scheduler = Scheduler(config, Counters())
        self.arrivals: deque[Request] = deque()
        self.busy = False

    @property
    def waiting(self) -> int:
        return len(self.arrivals) + len(self.scheduler.waiting)

    def load(self) -> int:
        return _WAITING_WEIGHT * self.waiting + len(self.scheduler.running)

    def compose(self, now: float, seen_s: float) -> RankWork:
        """The rank's part of the iteration that starts now, out of what was known before `seen_s`."""
        scheduler, arrivals = self.scheduler, self.arrivals
        if seen_s == inf:
            scheduler.release_held()
        while arrivals and arrivals[0].submitted_s < seen_s:
            scheduler.waiting.append(arrivals.popleft())
        chunks = scheduler.compose(now)
        self.busy = bool(chunks or scheduler.decoding)
        return RankWork(scheduler.decoding, scheduler.batch.tokens if scheduler.decoding else 0, chunks)
