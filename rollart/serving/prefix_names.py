"""A prefix cache whose prompts are named block by block, as traces with hashes give them.

A name stands for `prefix_tokens` tokens and all that lies before them, so two prompts that begin with the same names
begin with the same tokens. Named blocks are shared by reference count, can be found as soon as they are scheduled,
and become idle one name at a time, the last one first, when nobody holds them. What a request holds beyond its last
whole name (the rest of its prompt, its output) is kept too, as vLLM keeps it, but nobody can find it again.

A name of which a part was evicted is not found any more; its rest waits to be evicted.
"""

from rollart.serving.kvcache import KVCache
from rollart.serving.request import Request
from rollart.serving.segment import Segment

_NAMELESS = -1
"""Key of what nobody can find: no chain has it, since chains are not looked up here."""


class NamedPrefixCache(KVCache):
    """The block pool of one engine, its prompts found by `Request.prefix`."""

    __slots__ = ("_named_blocks", "_named_tokens")

    def __init__(self, capacity: int, block_size: int, caching: bool, prefix_tokens: int) -> None:
        super().__init__(capacity, block_size, caching)
        self._named_tokens = prefix_tokens
        self._named_blocks = prefix_tokens // block_size

    def admit(self, request: Request, budget_tokens: int) -> int:
        """As `KVCache.admit`, by names."""
        size, known = self.block_size, request.known_tokens
        found = self._find(request) if self.caching else []
        computed = len(found) * self._named_tokens
        chunk = 1 if request.kv_arrives else min(known - computed, budget_tokens)
        end = known if request.kv_arrives else computed + chunk
        fresh = -(-end // size) - len(found) * self._named_blocks
        needed_idle = sum(segment.blocks for segment in found if not segment.users)
        if fresh + needed_idle > self.free + self.idle:
            return 0
        self.idle -= needed_idle
        for segment in found:
            if not segment.users:
                self._idle_segments.remove(segment)
            segment.users += 1
        request.prefix_segments = found
        request.computed_tokens = computed
        self.take(fresh)
        self.fill_group(request, end)
        return chunk

    def fill_group(self, request: Request, computed_tokens: int) -> None:
        """Name the blocks that are whole now; one that another request has named meanwhile stays private."""
        held = request.prefix_segments
        if held is None or not self.caching:
            return
        tokens = min(computed_tokens, request.context_tokens)
        for key in request.prefix[len(held) : tokens // self._named_tokens]:
            segment = Segment(key, 0, self._named_blocks, self._named_blocks)
            segment.users = 1
            held.append(segment)
            other = self._groups.get(key)
            if other is None or other.blocks < other.limit:
                self._groups[key] = segment

    def release(self, request: Request, computed_tokens: int) -> None:
        """Take back the blocks of a request; the nameless ones go first, then the names from the last to the first."""
        size = self.block_size
        whole = computed_tokens // size
        if computed_tokens % size:
            self.free += 1
        held = request.prefix_segments or []
        request.prefix_segments = None
        rest = whole - len(held) * self._named_blocks
        if not self.caching:
            self.free += rest
            return
        if rest > 0:
            self._rest(Segment(_NAMELESS, 0, rest, 0))
        for segment in reversed(held):
            segment.users -= 1
            if not segment.users:
                self._rest(segment)

    def import_chain(self, chain: int, tokens: int) -> None:
        """Nothing: KV made elsewhere has no name here."""

    def _find(self, request: Request) -> list[Segment]:
        """The leading names that are whole in the cache; the last known token is always computed."""
        most = min(request.context_tokens, request.known_tokens - 1) // self._named_tokens
        found = []
        for key in request.prefix[:most]:
            segment = self._groups.get(key)
            if segment is None or segment.blocks < segment.limit:
                break
            found.append(segment)
        return found

    def _rest(self, segment: Segment) -> None:
        self._idle_segments.add(segment)
        self.idle += segment.blocks
