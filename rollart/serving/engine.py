"""The model of one LLM engine: iteration-exact, but woken only when its batch changes.

The engine is told the time and never reads a clock.  Its driver calls `advance` at `next_wake` (or later, up to
`quiet_until`), and any other method with a `now` that is not beyond `next_wake`.  Between two wake-ups the engine
runs a `Step` of one or many iterations; whatever arrives shortens the step to the boundary where it can first be seen.

What an iteration knows.  An iteration that starts at a boundary was composed `scheduling_lag` boundaries
earlier: it sees submissions and aborts made strictly before that moment, and slots and blocks of requests
that had finished by then.  When nothing is left to run, the pipeline drains and the next iteration is composed
with all that is known.  The same happens after a suspension and a weight update, which take effect at the
first boundary at or after their moment.
"""

from math import inf

from rollart.costs.interface import EngineCosts
from rollart.domain.errors import InvariantError
from rollart.serving.config import EngineConfig
from rollart.serving.counters import Counters, Usage
from rollart.serving.outlook import after_prompts, iterations_alike, with_arrival
from rollart.serving.prefill_first import PrefillFirst
from rollart.serving.request import Completion, Request, check_request, completion_of
from rollart.serving.scheduler import Scheduler
from rollart.serving.step import Step


class Engine:
    """One inference replica: batching, KV cache and prefix cache under given costs.

    `next_wake` is when `advance` is due next (seconds, infinite when nothing is). Where `quiet_until` is later, that
    will do for a driver which waits for completions alone: none comes before, unless the engine is told something.
    """

    __slots__ = (
        "_aborts",
        "_arrivals",
        "_block_size",
        "_costs",
        "_counters",
        "_kv_capacity_tokens",
        "_lag",
        "_live",
        "_max_running",
        "_quiet_iterations",
        "_scheduler",
        "_step",
        "_stepping",
        "_suspended",
        "_updating",
        "config",
        "next_wake",
        "quiet_until",
    )

    def __init__(self, config: EngineConfig, costs: EngineCosts) -> None:
        self.config = config
        self.next_wake = inf
        self.quiet_until = 0.0
        # Iterations from the start of the step until then.
        self._quiet_iterations = 0
        self._costs = costs
        self._lag = config.scheduling_lag
        self._block_size = config.block_size
        self._max_running = config.max_num_seqs
        self._kv_capacity_tokens = config.kv_capacity_tokens
        self._counters = Counters()
        kind = PrefillFirst if config.scheduler == "sglang" else Scheduler
        self._scheduler = kind(config, self._counters)
        self._step = Step()
        self._stepping = False
        self._suspended = False
        self._updating = False
        self._live: dict[int, Request] = {}
        # Submissions and aborts that no iteration has seen yet.
        self._arrivals: list[Request] = []
        self._aborts: list[tuple[float, Request]] = []

    @property
    def running(self) -> int:
        """Requests that have been admitted, aborted ones included until their row has left."""
        return len(self._scheduler.running)

    @property
    def waiting(self) -> int:
        """Requests that have been submitted but not admitted, or preempted."""
        return len(self._arrivals) + len(self._scheduler.waiting)

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._live

    def submit(self, request: Request, now: float) -> None:
        """Hand over a new request.

        Raises CapacityError when it could not even run alone, and InvariantError when it makes no sense.
        """
        if now > self.next_wake:
            self._late(now)
        check_request(request, self._kv_capacity_tokens)
        if request.request_id in self._live:
            raise InvariantError(f"engine: request id {request.request_id} is in use; ids of live requests differ")
        size = self._block_size
        if request.shared_tokens:
            request.shared_blocks = (request.shared_tokens - 1) // size
        reusable = request.reusable_tokens
        if reusable:
            if reusable == request.context_tokens:
                reusable -= 1
            request.peak_tokens = reusable - reusable % size
        request.submitted_s = now
        self._live[request.request_id] = request
        self._arrivals.append(request)
        if not self._stepping:
            self.quiet_until = 0.0
            if not self._suspended and self.next_wake > now:
                self.next_wake = now
            return
        # Behind an earlier one, or behind one that cannot be admitted, an arrival changes nothing yet.
        scheduler = self._scheduler
        if (
            self._step.iterations > 1
            and len(self._arrivals) == 1
            and not scheduler.waiting
            and len(scheduler.running) < self._max_running
        ):
            self._cut(self._step.iterations_past(now) + self._lag)
        if self.quiet_until > self.next_wake:
            told = self._quiet_iterations, self.quiet_until
            self._quiet_iterations, self.quiet_until = with_arrival(
                request, len(self._arrivals), scheduler, self._costs, self.config, self._step, *told
            )

    def abort(self, request_id: int, now: float) -> int:
        """Give up a request and return the tokens it has made.

        For the caller it is gone at once; its row leaves the batch when the next iteration is composed.
        Raises InvariantError when the engine does not have it (any more).
        """
        self._hear(now)
        request = self._live.pop(request_id, None)
        if request is None:
            raise InvariantError(f"engine: abort of request {request_id}, which is not here; it may have completed")
        made = self._tokens_made(request, now)
        if self._stepping:
            self._aborts.append((now, request))
            self._cut(self._step.iterations_past(now) + self._lag)
        else:
            self._observe_kv(now)
            self._see_arrivals(inf)
            self._scheduler.drop(request)
            self._observe_kv(now)
        return made

    def suspend(self, now: float) -> float:
        """Start no further iteration; return when the one that runs has ended (now, if none does)."""
        self._hear(now)
        self._suspended = True
        if self._stepping:
            self._cut(self._step.iterations_until(now))
            return self._step.end_s
        self.next_wake = inf
        return now

    def resume(self, now: float) -> None:
        """Lift a suspension."""
        self.quiet_until = 0.0
        if self._suspended:
            self._suspended = False
            if not self._stepping and self._live:
                self.next_wake = now

    def update_weights(self, now: float) -> None:
        """Install new weights, at once or when the running iteration ends.

        The prefix cache is lost and running requests go back to waiting, first in line, to compute prompt and
        tokens made again; with `keep_kv_on_update` nothing is lost.
        """
        self._hear(now)
        if self.config.keep_kv_on_update:
            return
        if self._stepping:
            self._updating = True
            self._cut(self._step.iterations_until(now))
        else:
            self._observe_kv(now)
            self._see_arrivals(inf)
            self._scheduler.lose_kv()
            self._observe_kv(now)

    def import_kv(self, chain: int, tokens: int, now: float) -> None:
        """KV of a chain's leading `tokens`, decoded on another engine, arrives; its next request finds it."""
        self._hear(now)
        self._scheduler.kv.import_chain(chain, tokens)
        self._observe_kv(now)

    def kill(self, now: float) -> list[tuple[int, int]]:
        """Die, and return (request id, tokens made) of every request; the engine is empty afterwards."""
        self._hear(now)
        made = [(key, self._tokens_made(request, now)) for key, request in self._live.items()]
        counters = self._counters
        if self._stepping:
            ended = self._step.iterations_ended(now)
            counters.iterations += ended
            counters.decode_tokens += ended * self._scheduler.decoding
            counters.rest(now)
        self._observe_kv(now)
        self._scheduler.clear()
        self._observe_kv(now)
        self._live.clear()
        self._arrivals.clear()
        self._aborts.clear()
        self._stepping = self._suspended = self._updating = False
        self.next_wake = inf
        return made

    def advance(self, now: float) -> list[Completion]:
        """Run up to `now` and return what completed, in order of time and admission."""
        done: list[Completion] = []
        # An engine at rest is due at infinity, and so may be the caller's `now`.
        while (time := self.next_wake) <= now and time != inf:
            if self._stepping:
                self._end_step(time, done)
            else:
                self._start_step(time, inf)
        return done

    def usage(self, now: float) -> Usage:
        """The counters as they stand now, iterations that have ended included."""
        c, scheduler = self._counters, self._scheduler
        batch, kv = scheduler.batch, scheduler.kv
        iterations, used = 0, kv.used
        if self._stepping:
            iterations = self._step.iterations_ended(now)
            used += batch.blocks_later(iterations - 1) if iterations > 1 else 0
        return Usage(
            time_s=now,
            busy_s=c.busy_until(now),
            iterations=c.iterations + iterations,
            prefill_tokens=c.prefill_tokens,
            decode_tokens=c.decode_tokens + iterations * scheduler.decoding,
            cached_tokens=c.cached_tokens,
            lost_history_tokens=c.lost_history_tokens,
            preempted_tokens=c.preempted_tokens,
            updated_tokens=c.updated_tokens,
            preemptions=c.preemptions,
            completions=c.completions,
            kv_block_s=c.kv_block_s + 0.5 * (c.kv_blocks + used) * (now - c.kv_since_s),
            kv_used_blocks=used,
            kv_idle_blocks=kv.idle,
            running=self.running,
            waiting=self.waiting,
        )

    def _end_step(self, now: float, done: list[Completion]) -> None:
        """The step is over: complete what it finished, then start the next one."""
        step, scheduler = self._step, self._scheduler
        # Under lag the next iteration was composed when the last one of this step started.
        seen_s = step.boundary_s(step.iterations - 1) if self._lag else now
        self._stepping = False
        counters = self._counters
        counters.iterations += step.iterations
        counters.decode_tokens += step.iterations * scheduler.decoding
        finished = scheduler.end_iterations(step.iterations, now)
        counters.observe_kv(scheduler.kv, now)
        if finished:
            self._complete(finished, now, done)
        if self._suspended or self._updating:
            self._drain(now)
            return
        self._start_step(now, seen_s)

    def _complete(self, finished: list[Request], now: float, done: list[Completion]) -> None:
        live, retire, hold = self._live, self._scheduler.retire, self._lag > 0
        for request in finished:
            retire(request, hold)
            # An aborted one has no one to tell.
            if live.get(request.request_id) is request:
                del live[request.request_id]
                done.append(completion_of(request, now))
                self._counters.completions += 1

    def _drain(self, now: float) -> None:
        """No iteration is under way: apply all that is pending, and go on unless suspended."""
        self._see_arrivals(inf)
        self._see_aborts(inf)
        self._scheduler.release_held()
        if self._updating:
            self._updating = False
            self._scheduler.lose_kv()
        self._observe_kv(now)
        self.next_wake = inf
        if self._suspended:
            self._counters.rest(now)
        else:
            self._start_step(now, inf)

    def _start_step(self, now: float, seen_s: float) -> None:
        """Compose an iteration out of what was known before `seen_s`; run it while nothing changes."""
        scheduler = self._scheduler
        batch = scheduler.batch
        if seen_s == inf:
            self._observe_kv(now)
            if scheduler.held:
                scheduler.release_held()
        if self._arrivals:
            self._see_arrivals(seen_s)
        if self._aborts:
            self._see_aborts(seen_s)
        chunks = scheduler.compose(now)
        if not chunks and not batch.size:
            self._start_empty(now, seen_s)
            return
        step = self._step
        if chunks:
            decoding = scheduler.decoding
            duration_s = self._costs.mixed_s(decoding, batch.tokens if decoding else 0, chunks)
            step.begin(now, 1, duration_s, 0.0, 0, 0)
            if not self._arrivals and not self._aborts:
                run, self.quiet_until = after_prompts(scheduler, self._costs, step.end_s)
                self._quiet_iterations = 1 + run
        else:
            piece = self._costs.decode(batch.size, batch.tokens)
            iterations = 1 if self._has_news() else iterations_alike(scheduler.batch, scheduler.kv, piece)
            step.begin(now, iterations, piece.base_s, piece.per_token_s, batch.size, batch.tokens)
            self.quiet_until = step.end_s
            self._quiet_iterations = iterations
        for request in scheduler.arrived_kv:
            if request.first_token_s is None:
                request.first_token_s = step.boundary_s(1)
        self._stepping = True
        self.next_wake = step.end_s
        counters = self._counters
        counters.kv_blocks = scheduler.kv.used
        if counters.busy_since_s is None:
            counters.busy_since_s = now

    def _start_empty(self, now: float, seen_s: float) -> None:
        """Nothing to run with what was seen: look at everything, and rest if that is nothing either."""
        if seen_s < inf:
            self._start_step(now, inf)
            return
        self.next_wake = inf
        self._counters.rest(now)
        self._observe_kv(now)
        if self._scheduler.waiting:
            raise InvariantError(f"engine: {self.waiting} requests wait at {now} s and none can run")

    def _has_news(self) -> bool:
        """Whether the iteration behind the next one may be composed differently for what has been told."""
        scheduler, waiting = self._scheduler, self._scheduler.waiting
        if self._aborts or (waiting and (scheduler.preempting or scheduler.held)):
            return True
        return bool(self._arrivals) and not waiting and len(scheduler.running) < self._max_running

    def _see_arrivals(self, seen_s: float) -> None:
        arrivals, waiting = self._arrivals, self._scheduler.waiting
        seen = 0
        for request in arrivals:
            if request.submitted_s >= seen_s:
                break
            waiting.append(request)
            seen += 1
        del arrivals[:seen]

    def _see_aborts(self, seen_s: float) -> None:
        aborts = self._aborts
        while aborts and aborts[0][0] < seen_s:
            self._scheduler.drop(aborts.pop(0)[1])

    def _cut(self, iterations: int) -> None:
        self._step.cut(iterations)
        self.next_wake = self._step.end_s

    def _observe_kv(self, now: float) -> None:
        self._counters.observe_kv(self._scheduler.kv, now)

    def _tokens_made(self, request: Request, now: float) -> int:
        """Tokens that the request has made here by now."""
        scheduler = self._scheduler
        made = request.known_tokens - request.context_tokens
        if not request.ticket:
            return made
        ended = self._step.iterations_ended(now) if self._stepping else 0
        if request in scheduler.prefilling or request is scheduler.partial:
            return made + (1 if ended and request is not scheduler.partial else 0)
        if not scheduler.decoding:
            ended = 0
        return request.kv_offset + scheduler.batch.iteration + ended + 1 - request.context_tokens

    def _hear(self, now: float) -> None:
        """Something is told: what was expected without it does not hold any more."""
        self.quiet_until = 0.0
        if now > self.next_wake:
            self._late(now)

    def _late(self, now: float) -> None:
        raise InvariantError(
            f"engine: told of {now} s, but it was due at {self.next_wake} s; call advance({now}) first"
        )
