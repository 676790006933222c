"""Who is part of the next iteration: vLLM's V1 rules over segments and sums.

Every decoding request gets one token, the rest of the token budget goes to prompts, first come first
served: the one that is partly computed, then the waiting ones.  A request that lacks a block preempts the
request admitted last, which computes its KV again later; nobody is admitted in such an iteration.

Invariant between iterations: a running request decodes, unless it is `partial`; `partial` is the last in
`running`, because it used up the budget that a later one would have needed.
"""

from collections import deque

from rollart.serving.batch import DecodeBatch
from rollart.serving.config import EngineConfig
from rollart.serving.counters import Counters
from rollart.serving.kvcache import KVCache
from rollart.serving.prefix_names import NamedPrefixCache
from rollart.serving.request import Loss, Request


class Scheduler:
    """Waiting and running requests of one engine, without any notion of how long an iteration takes."""

    mixes = True
    """An iteration may compute prompts and decode."""

    __slots__ = (
        "_budget_tokens",
        "_max_running",
        "_tickets",
        "arrived_kv",
        "batch",
        "counters",
        "decoding",
        "held",
        "kv",
        "partial",
        "preempting",
        "prefilling",
        "running",
        "waiting",
    )

    def __init__(self, config: EngineConfig, counters: Counters) -> None:
        self._max_running = config.max_num_seqs
        self._budget_tokens = config.max_num_batched_tokens
        self.kv: KVCache
        if config.prefix_tokens:
            self.kv = NamedPrefixCache(config.kv_blocks, config.block_size, config.prefix_caching, config.prefix_tokens)
        else:
            self.kv = KVCache(config.kv_blocks, config.block_size, config.prefix_caching)
        self.batch = DecodeBatch(config.block_size)
        self.counters = counters
        self._tickets = 0
        self.clear()

    def clear(self) -> None:
        """Forget all requests and the prefix cache."""
        self.kv.clear()
        self.batch.clear()
        self.waiting: deque[Request] = deque()
        # By ticket, in the order of admission.
        self.running: dict[int, Request] = {}
        self.partial: Request | None = None
        # Finished or not, these still occupy slots and blocks, with their tokens with KV.
        self.held: list[tuple[Request, int]] = []
        self.prefilling: list[Request] = []
        self.arrived_kv: list[Request] = []
        self.preempting = False
        # Requests that the iteration under way gives a token each.
        self.decoding = 0

    def compose(self, now: float) -> list[tuple[int, int]]:
        """Form the iteration that starts now, and return its prompt chunks (new tokens, tokens with KV).

        Blocks for the iteration are taken.  `prefilling` has the requests of the chunks, `arrived_kv` those
        that start to decode on KV made elsewhere; the latter are in the batch already.
        """
        chunks: list[tuple[int, int]] = []
        batch = self.batch
        self.preempting = False
        if self.arrived_kv:
            self.arrived_kv = []
        if batch.size:
            blocks = batch.blocks_now()
            if blocks:
                self._grow_decodes(blocks)
        budget = self._budget_tokens - batch.size
        if self.partial is not None:
            budget -= self._continue_partial(self.partial, budget, chunks)
        if self.waiting and not self.preempting:
            self._admit(now, budget, chunks)
        self.decoding = batch.size
        return chunks

    def end_iterations(self, iterations: int, now: float) -> list[Request]:
        """Account for iterations that have run; return what they completed, in order of admission."""
        batch = self.batch
        if self.held:
            self.release_held()
        blocks = batch.advance(iterations)
        if blocks:
            self.kv.take(blocks)
        if self.prefilling:
            self._end_chunks(now)
        return self._finished()

    def _finished(self) -> list[Request]:
        running = self.running
        return [running[ticket] for ticket in self.batch.finished()]

    def retire(self, request: Request, hold: bool) -> None:
        """Take out a request that is complete; `hold` keeps its slot and blocks for one iteration more."""
        computed = self.batch.leave(request)
        del self.running[request.ticket]
        request.ticket = 0
        if hold:
            self.held.append((request, computed))
        else:
            self.kv.release(request, computed)

    def release_held(self) -> None:
        """Free what finished requests still occupy."""
        for request, computed in self.held:
            self.kv.release(request, computed)
        self.held = []

    def drop(self, request: Request) -> None:
        """Take out an aborted request, wherever it is."""
        if request.ticket:
            del self.running[request.ticket]
            self.kv.release(request, self._stop(request))
        elif request in self.waiting:
            self.waiting.remove(request)

    def lose_kv(self) -> None:
        """New weights: running requests, KV on its way and the prefix cache are lost."""
        for request in self.waiting:
            if request.kv_arrives:
                request.kv_arrives = False
                request.peak_tokens = request.context_tokens - 1
                request.loss = Loss.UPDATE
        while self.running:
            request = self._pop_last()
            request.loss = Loss.UPDATE
        self.kv.drop_idle()

    def _grow_decodes(self, blocks: int) -> None:
        """Take the blocks that decoding requests start now, preempting where they are lacking."""
        kv, batch = self.kv, self.batch
        if blocks <= kv.free + kv.idle:
            kv.take(blocks)
            return
        for request in list(self.running.values()):
            if request is self.partial:
                return
            if request.ticket and batch.needs_block(request):
                self._preempt_for(request)
                if request.ticket:
                    kv.take(1)

    def _preempt_for(self, request: Request) -> None:
        """Preempt from the end until there is a block, or the request itself has gone."""
        kv = self.kv
        while kv.free + kv.idle < 1 and request.ticket:
            self._preempt_last()

    def _continue_partial(self, request: Request, budget: int, chunks: list[tuple[int, int]]) -> int:
        chunk = min(request.known_tokens - request.computed_tokens, budget)
        if not self.kv.extend(request, chunk):
            self._preempt_last()
            return 0
        self._add_chunk(request, chunk, chunks)
        return chunk

    def _admit(self, now: float, budget: int, chunks: list[tuple[int, int]]) -> None:
        """Admit while budget, slots and blocks last; the first request that does not fit stops all."""
        waiting = self.waiting
        admit = self.kv.admit
        slots = self._max_running - len(self.running) - len(self.held)
        while waiting and slots > 0 and budget > 0:
            request = waiting[0]
            chunk = admit(request, budget)
            if not chunk:
                return
            slots -= 1
            budget -= chunk
            self._begin_first(request, now)
            if request.kv_arrives:
                self.arrived_kv.append(request)
                self.batch.join(request)
            else:
                self._add_chunk(request, chunk, chunks)

    def _begin_first(self, request: Request, now: float) -> None:
        """The first waiting request runs from now on."""
        self.waiting.popleft()
        self._tickets += 1
        request.ticket = self._tickets
        self.running[request.ticket] = request
        if request.scheduled_s is None:
            request.scheduled_s = now
            request.cached_tokens = request.computed_tokens
            self.counters.cached_tokens += request.computed_tokens

    def _add_chunk(self, request: Request, chunk: int, chunks: list[tuple[int, int]]) -> None:
        computed = request.computed_tokens
        request.chunk_tokens = chunk
        chunks.append((chunk, computed))
        self.prefilling.append(request)
        self.partial = request if computed + chunk < request.known_tokens else None
        self.counters.prefill_tokens += chunk
        if computed < request.peak_tokens:
            self._count_again(request, min(chunk, request.peak_tokens - computed))

    def _count_again(self, request: Request, tokens: int) -> None:
        """Book tokens that are computed again under the loss that last hit the request."""
        request.recomputed_tokens += tokens
        if request.loss is Loss.HISTORY:
            self.counters.lost_history_tokens += tokens
        elif request.loss is Loss.PREEMPTION:
            self.counters.preempted_tokens += tokens
        else:
            self.counters.updated_tokens += tokens

    def _end_chunks(self, now: float) -> None:
        """Chunks have KV now; a prompt that is whole has made a token and decodes from here on."""
        partial, join = self.partial, self.batch.join
        for request in self.prefilling:
            request.computed_tokens += request.chunk_tokens
            if request is not partial:
                request.known_tokens += 1
                if request.first_token_s is None:
                    request.first_token_s = now
                join(request)
        self.prefilling = []

    def _preempt_last(self) -> None:
        request = self._pop_last()
        request.loss = Loss.PREEMPTION
        request.preemptions += 1
        self.counters.preemptions += 1
        self.preempting = True

    def _pop_last(self) -> Request:
        """Send the request admitted last back to the head of the waiting ones, without its KV."""
        _, request = self.running.popitem()
        computed = self._stop(request)
        self.kv.release(request, computed)
        request.kv_arrives = False
        request.peak_tokens = max(request.peak_tokens, computed)
        request.reusable_tokens = request.known_tokens
        request.computed_tokens = 0
        self.waiting.appendleft(request)
        return request

    def _stop(self, request: Request) -> int:
        """End the decoding or the prefill of a request and return its tokens with KV."""
        if request is self.partial:
            self.partial = None
            computed = request.computed_tokens
        else:
            computed = self.batch.leave(request)
            request.known_tokens = computed + 1
        request.ticket = 0
        return computed
