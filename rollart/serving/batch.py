"""The requests that decode, as sums: what k iterations of them cost, need and finish.

Iterations are numbered without gaps.  A request that decodes gains one token per iteration, so its tokens
with KV are `kv_offset + iteration`, its place within a block is fixed by `kv_offset mod block_size`, and the
iteration before which it is complete is known when it joins.
"""

from array import array
from bisect import bisect_left, insort

from rollart.serving.request import Request

_TICKET_BITS = 28
_TICKETS = (1 << _TICKET_BITS) - 1


class DecodeBatch:
    """`size` decoding requests with `tokens` resident tokens before iteration `iteration`.

    `tokens` counts the token that the iteration computes, so it is what attention reads.
    """

    __slots__ = ("_finishing", "_phases", "block_size", "iteration", "size", "tokens")

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.iteration = 0
        self.clear()

    def clear(self) -> None:
        """Drop all requests."""
        self.size = 0
        self.tokens = 0
        self._phases = array("I", bytes(4 * self.block_size))
        # Iteration before which a request is complete, and its ticket, as one number: an array is denser than tuples.
        self._finishing = array("q")

    def join(self, request: Request) -> None:
        """Let a request decode from the next iteration on; all its known tokens but one have KV."""
        known = request.known_tokens
        iteration = self.iteration
        offset = request.kv_offset = known - 1 - iteration
        self.size += 1
        self.tokens += known
        self._phases[offset % self.block_size] += 1
        insort(self._finishing, self._finish(request))

    def leave(self, request: Request) -> int:
        """Take a request out and return its tokens with KV."""
        offset = request.kv_offset
        computed = offset + self.iteration
        self.size -= 1
        self.tokens -= computed + 1
        self._phases[offset % self.block_size] -= 1
        finishing = self._finishing
        del finishing[bisect_left(finishing, self._finish(request))]
        return computed

    def advance(self, iterations: int) -> int:
        """Every request gains a token per iteration; return the blocks started after the first one."""
        blocks = self.blocks_later(iterations - 1) if iterations > 1 else 0
        self.iteration += iterations
        self.tokens += iterations * self.size
        return blocks

    def finished(self) -> list[int]:
        """Tickets of the requests that are complete before the next iteration, in order of admission; they stay in."""
        finishing = self._finishing
        most = (self.iteration + 1) << _TICKET_BITS
        if not finishing or finishing[0] >= most:
            return []
        return [number & _TICKETS for number in finishing[: bisect_left(finishing, most)]]

    def iterations_to_finish(self) -> int:
        """Iterations until the first request is complete; the batch is not empty."""
        return (self._finishing[0] >> _TICKET_BITS) - self.iteration

    def _finish(self, request: Request) -> int:
        """The iteration before which a request is complete, and its ticket."""
        last = request.context_tokens + request.output_tokens - 1 - request.kv_offset
        return last << _TICKET_BITS | request.ticket

    def needs_block(self, request: Request) -> bool:
        """Whether the next iteration of the request starts a new block."""
        return (request.kv_offset + self.iteration) % self.block_size == 0

    def blocks_now(self) -> int:
        """Blocks that the next iteration starts."""
        return self._phases[-self.iteration % self.block_size]

    def blocks_later(self, iterations: int) -> int:
        """Blocks that this many iterations after the next one start."""
        size = self.block_size
        rest = iterations % size
        blocks = iterations // size * self.size
        if rest:
            # Iteration m starts a block for offsets congruent to -m: a run of bins, downwards.
            phases = self._phases
            low = -(self.iteration + rest) % size
            high = low + rest
            blocks += sum(phases[low:high])
            if high > size:
                blocks += sum(phases[: high - size])
        return blocks

    def iterations_within(self, blocks: int, iterations: int) -> int:
        """How many of this many iterations after the next one can be had for so many blocks."""
        size = self.block_size
        batch = self.size
        # A bound first: every request starts one block in `size` iterations.
        if (iterations // size + 1) * batch <= blocks:
            return iterations
        cycles, blocks = divmod(blocks, batch)
        fitting = cycles * size
        phases = self._phases
        position = -(self.iteration + 1 + fitting) % size
        while fitting < iterations and phases[position] <= blocks:
            blocks -= phases[position]
            position -= 1  # Bin -1 is the last one: the run wraps by itself.
            fitting += 1
        return min(fitting, iterations)
