"""Counter-based chance: draws are keyed by what they are for, never by when they are made.

Two plans that are simulated with one seed meet the same luck, whatever the order of their events. The key is
a hash that depends on neither PYTHONHASHSEED nor the platform; the stream is numpy's Philox-4x64.
"""

import struct
from hashlib import blake2b

import numpy as np

_PACK_INDICES = struct.Struct("<4q").pack
_UNPACK_KEY = struct.Struct("<2Q").unpack


class Chance:
    """Random generators keyed by (seed, source, task, indices).

    One bit generator is re-keyed in place, which is six times cheaper than making one: the generator that
    `at` returns is good until the next call of `at` on the same object. Not for use from two threads.
    """

    def __init__(self, seed: int, source: str, task: str) -> None:
        self._prefix = blake2b(f"{seed}\0{source}\0{task}".encode(), digest_size=16)
        self._bits = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._bits)
        # Of this state only the key differs between draws: counter 0, empty buffer (position 4 of 4).
        self._state = self._bits.state
        self._key = self._state["state"]["key"]

    def at(self, first: int, second: int = 0, third: int = 0, fourth: int = 0) -> np.random.Generator:
        """A generator at the start of the stream of these indices."""
        digest = self._prefix.copy()
        digest.update(_PACK_INDICES(first, second, third, fourth))
        self._key[0], self._key[1] = _UNPACK_KEY(digest.digest())
        self._bits.state = self._state
        return self._generator
