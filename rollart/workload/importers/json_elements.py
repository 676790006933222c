"""Splits a JSON list into the texts of its elements without holding the list.

Only brackets, braces and strings are looked at: the elements are checked when they are decoded.
"""

import re
from collections.abc import Iterator

_NO_MARK = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Whole strings, and all else but brackets; stops at a bracket or at a string that does not end in the piece."""
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
"""Up to the quote that ends a string, or as far as there is text. Possessive, as above: nothing is kept to go back."""
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*$')
_KEY_WINDOW_BYTES = 256


class ElementSplitter:
    """Fed with pieces of a file; gives elements of the top list, or of the list under a key of the top object."""

    def __init__(self, key: str | None, limit_bytes: int) -> None:
        self._key = None if key is None else key.encode()
        self._limit = limit_bytes
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._inside = False
        """Whether the list that is asked for has begun."""
        self.complete = False
        self._parts: list[bytes] | None = None
        self._size = 0
        self._before = b""
        """The end of what was read outside an element, to find the key before a bracket."""

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        """Elements (objects and lists) that end in this piece; None for one that is over the limit."""
        position = start = 0
        if self._escaped:
            self._escaped = False
            position = 1
        while position < len(piece) and not self.complete:
            if self._in_string:
                position = self._leave_string(piece, position)
                continue
            skipped = _NO_MARK.match(piece, position)
            at = position if skipped is None else skipped.end()
            if at >= len(piece):
                break
            mark = piece[at]
            position = at + 1
            if mark == 0x22:
                self._in_string = True
            elif mark in b"{[":
                if self._inside and self._depth == self._list_depth and self._parts is None:
                    self._parts, self._size, start = [], 0, at
                self._open(piece, at, mark)
            elif mark in b"}]":
                self._depth -= 1
                if self._inside and self._depth == self._list_depth and self._parts is not None:
                    yield self._take(piece[start : at + 1])
                elif self._inside and self._depth < self._list_depth:
                    self.complete = True
        self._keep(piece, start)

    def _leave_string(self, piece: bytes, position: int) -> int:
        """Where to go on after the string's end, or after the piece."""
        rest = _STRING_REST.match(piece, position)
        end = len(piece) if rest is None else rest.end()
        if end >= len(piece):
            return len(piece)
        if piece[end] == 0x22:
            self._in_string = False
            return end + 1
        # A backslash is the last byte: what it escapes is in the next piece.
        self._escaped = True
        return len(piece)

    @property
    def began(self) -> bool:
        """Whether the list has been found."""
        return self._inside

    @property
    def _list_depth(self) -> int:
        return 1 if self._key is None else 2

    def _open(self, piece: bytes, at: int, mark: int) -> None:
        self._depth += 1
        if not self._inside and mark == 0x5B and self._depth == self._list_depth:
            self._inside = self._key is None or self._key_before(piece, at) == self._key

    def _key_before(self, piece: bytes, at: int) -> bytes | None:
        text = piece[max(0, at - _KEY_WINDOW_BYTES) : at]
        if len(text) < _KEY_WINDOW_BYTES:
            text = self._before + text
        found = _KEY.search(text)
        return None if found is None else found.group(1)

    def _take(self, last: bytes) -> bytes | None:
        assert self._parts is not None
        whole = None if self._size + len(last) > self._limit else b"".join((*self._parts, last))
        self._parts = None
        return whole

    def _keep(self, piece: bytes, start: int) -> None:
        """Hold what belongs to an unfinished element, up to the limit."""
        if self._parts is None:
            self._before = (self._before + piece)[-_KEY_WINDOW_BYTES:]
            return
        rest = piece[start:]
        self._size += len(rest)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(rest)
