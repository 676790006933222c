"""Who is part of the next iteration under SGLang's rules: prompts first, in iterations of their own.

While a prompt is partly computed or a waiting request can be admitted, the iteration computes prompts only, up to
the token budget, and decoding stands still; otherwise every running request decodes. So requests that come in
together stay together, in waves. An admission needs room for its prompt and all its output, beside a share of what
the running ones may still make; a request that lacks KV for its next token preempts the one admitted last.

Simplified: the share is a constant, where SGLang raises it after a preemption and lets it decay; the cached part of
a prompt is not taken off the room that it needs; SGLang preempts those with the fewest output tokens first.
"""

from rollart.domain.errors import InvariantError
from rollart.serving.request import Request
from rollart.serving.scheduler import Scheduler

RESERVED_SHARE = 0.1
"""Of the tokens that running requests may still make, which admission leaves room for: where SGLang's ratio, which
starts at 0.7, comes to rest after some hundred iterations."""
MOST_RESERVED_TOKENS = 4096
"""No request counts as making more than that when room is estimated."""


class PrefillFirst(Scheduler):
    """Waiting and running requests of one engine that gives prompts priority."""

    mixes = False

    __slots__ = ()

    def compose(self, now: float) -> list[tuple[int, int]]:
        """Form the iteration that starts now: either prompt chunks, which are returned, or decoding alone."""
        chunks: list[tuple[int, int]] = []
        batch = self.batch
        self.preempting = False
        budget = self._budget_tokens
        if self.partial is not None:
            budget -= self._continue_partial(self.partial, budget, chunks)
        if self.waiting and not self.preempting:
            self._admit(now, budget, chunks)
        self.decoding = 0 if chunks else batch.size
        if self.decoding:
            blocks = batch.blocks_now()
            if blocks:
                self._grow_decodes(blocks)
            self.decoding = batch.size
        return chunks

    def end_iterations(self, iterations: int, now: float) -> list[Request]:
        """Account for iterations that have run; return what they completed, in order of admission."""
        if self.decoding:
            return super().end_iterations(iterations, now)
        if self.held:
            self.release_held()
        self._end_chunks(now)
        return self._finished()

    def _admit(self, now: float, budget: int, chunks: list[tuple[int, int]]) -> None:
        """Admit while budget, slots and room last; the first request that does not fit stops all."""
        slots = self._max_running - len(self.running) - len(self.held)
        if slots < 1 or budget < 1:
            return
        kv, waiting = self.kv, self.waiting
        reserved = self._reserved_tokens()
        while waiting and slots > 0 and budget > 0:
            request = waiting[0]
            if request.kv_arrives:
                raise InvariantError(f"engine: request {request.request_id} brings KV; sglang rules do not model that")
            left = request.context_tokens + request.output_tokens - request.known_tokens
            needed = request.known_tokens + min(left, MOST_RESERVED_TOKENS) - 1
            available = (kv.free + kv.idle) * kv.block_size
            if self.running and needed + reserved > available:
                return
            chunk = kv.admit(request, budget)
            if not chunk:
                return
            slots -= 1
            budget -= chunk
            reserved += needed - request.computed_tokens - chunk
            self._begin_first(request, now)
            self._add_chunk(request, chunk, chunks)

    def _reserved_tokens(self) -> float:
        """Room that running requests are given for what they may still make."""
        # Of the running ones only the first that computes its prompt now can be no decoding one.
        prompt = self.prefilling[0] if self.prefilling else None
        iteration = self.batch.iteration
        tokens = 0
        for request in self.running.values():
            known = request.known_tokens if request is prompt else request.kv_offset + iteration + 1
            tokens += min(request.context_tokens + request.output_tokens - known, MOST_RESERVED_TOKENS)
        return RESERVED_SHARE * tokens
