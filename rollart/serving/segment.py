"""Cached blocks that live and die together."""


class Segment:
    """Blocks `start .. start + blocks` of a chain, or of a group's prompt (`start` 0, whole at `limit`).

    `users` running requests hold a group's segment; a chain's is always idle.
    """

    __slots__ = ("blocks", "idle_number", "key", "limit", "start", "users")

    def __init__(self, key: int, start: int, blocks: int, limit: int) -> None:
        self.key = key
        self.start = start
        self.blocks = blocks
        self.limit = limit
        self.users = 0
        # The queue's; 0 while not idle.
        self.idle_number = 0
