"""Paged KV blocks and the prefix cache, counted by segment.

A segment is a run of whole cached blocks that live and die together: a group's shared prompt, or what a chain
left behind when its last request ended.  Blocks are free, idle (cached, evictable) or used:

    free + idle + used == capacity

Idle segments are evicted in the order they became idle, each from its last block backwards; a request that
ends frees its own blocks before its group's prompt, so a prefix never goes before what hangs on it.  Free
blocks are used up before anything is evicted.  The cache knows token counts, never tokens, and no time.

Two simplifications.  A group shares `(shared_tokens - 1) // block_size` blocks, so that the block with the
last token of the bare prompt, which every member must compute, is private.  A request that names another
number of shared tokens than the group's blocks in the cache shares nothing.
"""

from rollart.serving.idle import IdleQueue
from rollart.serving.request import Request
from rollart.serving.segment import Segment


class KVCache:
    """The block pool of one engine."""

    __slots__ = ("_chains", "_groups", "_idle_segments", "block_size", "caching", "capacity", "free", "idle")

    def __init__(self, capacity: int, block_size: int, caching: bool) -> None:
        self.capacity = capacity
        self.block_size = block_size
        self.caching = caching
        self.clear()

    def clear(self) -> None:
        """Forget everything, running requests included."""
        self.free = self.capacity
        self.idle = 0
        self._chains: dict[int, Segment] = {}
        self._groups: dict[int, Segment] = {}
        self._idle_segments = IdleQueue()

    @property
    def used(self) -> int:
        """Blocks that running requests hold."""
        return self.capacity - self.free - self.idle

    def take(self, blocks: int) -> None:
        """Hand out blocks; the caller has checked that free + idle suffice."""
        if blocks <= self.free:
            self.free -= blocks
        else:
            lacking = blocks - self.free
            self.free = 0
            self._evict(lacking)

    def admit(self, request: Request, budget_tokens: int) -> int:
        """Give a waiting request its cached prefix and blocks for its first chunk.

        Returns the tokens it may compute now (1 if its KV arrives with it), or 0 when blocks are lacking:
        then nothing has changed.  Sets `computed_tokens` to the tokens found.
        """
        size = self.block_size
        known = request.known_tokens
        group: Segment | None = None
        own: Segment | None = None
        share = found = own_found = needed_idle = 0
        if self.caching:
            share = request.shared_blocks
            if share:
                group = self._groups.get(request.group)
                if group is not None:
                    if group.limit != share:
                        # For good, so that an eviction cannot change what a waiting request finds.
                        group = None
                        share = request.shared_blocks = 0
                    else:
                        found = group.blocks
                        if not group.users:
                            needed_idle = found
            if found == share:
                own = self._chains.get(request.chain)
                if own is not None and own.start == share:
                    # The last known token is always computed: it makes the next one.
                    reusable = request.reusable_tokens
                    own_found = (reusable if reusable < known else known - 1) // size - share
                    if own_found > own.blocks:
                        own_found = own.blocks
                    if own_found > 0:
                        found += own_found
                        needed_idle += own_found
                    else:
                        own_found = 0
        computed = found * size
        if request.kv_arrives:
            chunk, end = 1, known
        else:
            chunk = known - computed
            if chunk > budget_tokens:
                chunk = budget_tokens
            end = computed + chunk
        fresh = (end + size - 1) // size - found
        if fresh + needed_idle > self.free + self.idle:
            return 0
        if self.caching:
            self._claim(request, group, share, own_found)
        request.computed_tokens = computed
        if fresh <= self.free:
            self.free -= fresh
        else:
            self.take(fresh)
        if found < share:
            self.fill_group(request, end)
        return chunk

    def extend(self, request: Request, chunk_tokens: int) -> bool:
        """Blocks for the next chunk of a running prompt; False when they are lacking."""
        size = self.block_size
        held = request.computed_tokens
        fresh = (held + chunk_tokens + size - 1) // size - (held + size - 1) // size
        if fresh > self.free + self.idle:
            return False
        self.take(fresh)
        self.fill_group(request, held + chunk_tokens)
        return True

    def fill_group(self, request: Request, computed_tokens: int) -> None:
        """Make prompt blocks findable by the group as soon as they are scheduled, as vLLM does."""
        group = request.group_segment
        if group is not None and group.blocks < group.limit:
            group.blocks = min(group.limit, computed_tokens // self.block_size)

    def release(self, request: Request, computed_tokens: int) -> None:
        """Take back the blocks of a request with KV for so many tokens; whole ones stay findable."""
        size = self.block_size
        whole = computed_tokens // size
        if computed_tokens % size:
            self.free += 1
        if not self.caching:
            self.free += whole
            return
        group = request.group_segment
        share = group.limit if group is not None else 0
        if whole > share:
            own = Segment(request.chain, share, whole - share, 0)
            self._chains[request.chain] = own
            self._idle_segments.add(own)
            self.idle += whole - share
        if group is not None:
            request.group_segment = None
            group.users -= 1
            if not group.users:
                if group.blocks:
                    self._idle_segments.add(group)
                    self.idle += group.blocks
                else:
                    del self._groups[group.key]

    def import_chain(self, chain: int, tokens: int) -> None:
        """KV of a chain's leading `tokens`, made elsewhere, joins what is idle of it here.

        Only as far as blocks are free or can be evicted, and only behind a segment that is still there: a gap before
        the new blocks would make them unreachable.
        """
        own = self._chains.get(chain)
        if own is None or not self.caching:
            return
        wanted = tokens // self.block_size - own.start - own.blocks
        if wanted <= 0:
            return
        # Out of the queue while others are evicted for it; back at its end, as what was used last.
        self._idle_segments.remove(own)
        self.idle -= own.blocks
        fresh = min(wanted, self.free + self.idle)
        self.take(fresh)
        own.blocks += fresh
        self.idle += own.blocks
        self._idle_segments.add(own)

    def drop_idle(self) -> None:
        """Lose the prefix cache: what is idle becomes free."""
        for segment in self._idle_segments:
            if self._groups.get(segment.key) is segment:
                del self._groups[segment.key]
        self._chains.clear()
        self._idle_segments = IdleQueue()
        self.free += self.idle
        self.idle = 0

    def _claim(self, request: Request, group: Segment | None, share: int, own_found: int) -> None:
        """Turn what was found from idle into used; the rest of the chain's segment can no longer be found."""
        own = self._chains.pop(request.chain, None)
        if own_found and own is not None:
            self.idle -= own_found
            own.blocks -= own_found
            if not own.blocks:
                self._idle_segments.remove(own)
        if not share:
            return
        if group is None:
            group = self._groups[request.group] = Segment(request.group, 0, 0, share)
        elif not group.users:
            self._idle_segments.remove(group)
            self.idle -= group.blocks
        group.users += 1
        request.group_segment = group

    def _evict(self, blocks: int) -> None:
        """Drop the longest-idle blocks; they are handed out at once."""
        self.idle -= blocks
        segments = self._idle_segments
        while blocks:
            oldest = segments.oldest()
            if oldest.blocks > blocks:
                oldest.blocks -= blocks
                return
            blocks -= oldest.blocks
            oldest.blocks = 0
            segments.remove(oldest)
            index = self._groups if oldest.limit else self._chains
            if index.get(oldest.key) is oldest:
                del index[oldest.key]
