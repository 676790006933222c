"""The cache of named prefixes: by hand, and against a table of block ids on random prompts."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.serving import Request
from rollart.serving.prefix_names import NamedPrefixCache


def prompt(number, tokens, names, output=1):
    return Request(request_id=number, chain=number, context_tokens=tokens, output_tokens=output, prefix=tuple(names))


def test_equal_names_are_computed_once():
    cache = NamedPrefixCache(100, 16, True, 64)
    first, second = prompt(1, 200, [7, 8, 9]), prompt(2, 200, [7, 8, 5])
    assert cache.admit(first, 1000) == 200
    assert cache.free == 100 - 13
    assert cache.admit(second, 1000) == 200 - 128
    assert second.computed_tokens == 128
    assert cache.free == 100 - 13 - 5


def test_the_last_token_is_always_computed():
    cache = NamedPrefixCache(100, 16, True, 64)
    cache.admit(prompt(1, 128, [1, 2]), 1000)
    again = prompt(2, 128, [1, 2])
    assert cache.admit(again, 1000) == 64


def test_names_go_from_the_last_to_the_first_when_blocks_are_needed():
    cache = NamedPrefixCache(12, 16, True, 64)
    first = prompt(1, 192, [1, 2, 3])
    cache.admit(first, 1000)
    cache.release(first, 192)
    assert (cache.free, cache.idle) == (0, 12)
    other = prompt(2, 64, [9])
    cache.admit(other, 1000)
    cache.release(other, 64)
    # The block of name 3 has gone whole; 1 and 2 are still there.
    again = prompt(3, 192, [1, 2, 3])
    assert cache.admit(again, 1000) == 64


def test_a_name_of_which_a_part_is_gone_is_computed_again():
    cache = NamedPrefixCache(8, 16, True, 64)
    first = prompt(1, 128, [1, 2])
    cache.admit(first, 1000)
    cache.release(first, 128)
    small = prompt(2, 16, [])
    cache.admit(small, 1000)
    assert cache.idle == 7
    again = prompt(3, 112, [1, 2])
    assert cache.admit(again, 1000) == 48


def test_two_that_compute_one_name_at_once_keep_a_copy_each():
    """Neither name is in the cache when they are admitted chunk by chunk."""
    cache = NamedPrefixCache(100, 16, True, 64)
    first, second = prompt(1, 200, [1, 2]), prompt(2, 200, [1, 2])
    cache.admit(first, 32)
    cache.admit(second, 32)
    assert (first.computed_tokens, second.computed_tokens) == (0, 0)
    first.computed_tokens = second.computed_tokens = 32
    assert cache.extend(first, 168)
    assert cache.extend(second, 168)
    cache.release(first, 200)
    cache.release(second, 200)
    assert cache.used == 0
    assert cache.free + cache.idle == 100


class BlockIds:
    """Blocks by id, found by (position, name): what the cache counts by segments, in full."""

    def __init__(self, blocks, per_name):
        self.free = list(range(blocks))
        self.idle = []
        self.users = [0] * blocks
        self.block_of = {}
        self.per_name = per_name

    def take(self):
        if self.free:
            block = self.free.pop()
        else:
            block = self.idle.pop(0)
            gone = {name for (name, _), other in self.block_of.items() if other == block}
            self.block_of = {key: b for key, b in self.block_of.items() if key[0] not in gone}
        self.users[block] = 1
        return block

    def admit(self, tokens, names, size):
        named = (tokens - 1) // (size * self.per_name)
        found = []
        for name in names[:named]:
            blocks = [self.block_of.get((name, i)) for i in range(self.per_name)]
            if None in blocks:
                break
            found += blocks
        fresh = -(-tokens // size) - len(found)
        idle_hits = sum(self.users[block] == 0 for block in found)
        if fresh + idle_hits > len(self.free) + len(self.idle):
            return None
        for block in found:
            if not self.users[block]:
                self.idle.remove(block)
            self.users[block] += 1
        table = found + [self.take() for _ in range(fresh)]
        for position, name in enumerate(names[: tokens // (size * self.per_name)]):
            keys = [(name, i) for i in range(self.per_name)]
            if keys[0] not in self.block_of:
                start = position * self.per_name
                self.block_of.update(zip(keys, table[start : start + self.per_name], strict=True))
        return table, len(found)

    def release(self, table, tokens, size):
        whole = tokens // size
        for index in reversed(range(len(table))):
            block = table[index]
            self.users[block] -= 1
            if not self.users[block]:
                (self.idle if index < whole else self.free).append(block)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), blocks=st.sampled_from([16, 40, 100]), caching=st.just(True))
def test_same_as_block_ids(seed, blocks, caching):
    """Whole prompts in and out: found tokens, free and idle blocks agree."""
    chance = random.Random(seed)
    cache, ids = NamedPrefixCache(blocks, 4, caching, 8), BlockIds(blocks, 2)
    held = []
    for number in range(60):
        if held and chance.random() < 0.5:
            request, table = held.pop(chance.randrange(len(held)))
            cache.release(request, request.context_tokens)
            ids.release(table, request.context_tokens, 4)
        else:
            tokens = chance.randint(1, 60)
            # A name stands for all before it: a path in a tree with two branches at each step.
            path, names = 1, []
            for _ in range(-(-tokens // 8)):
                path = 2 * path + chance.randrange(2) * (chance.random() < 0.4)
                names.append(path)
            request = prompt(number, tokens, names)
            expected = ids.admit(tokens, names, 4)
            got = cache.admit(request, 10**6)
            assert (got == 0) == (expected is None)
            if expected is not None:
                assert request.computed_tokens == 4 * expected[1]
                held.append((request, expected[0]))
        assert cache.free + cache.idle == len(ids.free) + len(ids.idle)
