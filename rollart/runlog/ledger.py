"""Columns that grow: rows keyed by a rising number, and rows numbered from 0."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rollart.runlog.window import Flags, Ints

Array = NDArray[Any]


class Ledger:
    """Rows in order of a rising integer key; append at the end, look up by key, drop by mask."""

    def __init__(self, **dtypes: DTypeLike) -> None:
        """Names and types of the columns beside the key."""
        self._rows = 0
        self._columns: dict[str, Array] = {name: np.empty(0, dtype=dtype) for name, dtype in dtypes.items()}
        self._columns["key"] = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Rows held now."""
        return self._rows

    def __getitem__(self, name: str) -> Array:
        """A column, as a view that may be written to; the key's is `key`."""
        return self._columns[name][: self._rows]

    def append(self, key: Ints, columns: Mapping[str, Array]) -> None:
        """Add rows whose keys rise and are above those held."""
        begin, end = self._rows, self._rows + len(key)
        for name, held in self._columns.items():
            if end > len(held):
                grown = np.empty(max(end, 2 * len(held)), dtype=held.dtype)
                grown[:begin] = held[:begin]
                held = self._columns[name] = grown
            held[begin:end] = key if name == "key" else columns[name]
        self._rows = end

    def find(self, key: Ints) -> Ints:
        """Row of each key, -1 where it is not held."""
        keys = self["key"]
        if not len(keys):
            return np.full(len(key), -1, dtype=np.int64)
        rows = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[rows] == key, rows, -1)

    def find_one(self, key: int) -> int | None:
        """Row of a key, None if it is not held."""
        row = int(np.searchsorted(self["key"], key))
        return row if row < self._rows and int(self["key"][row]) == key else None

    def keep(self, mask: Flags) -> None:
        """Drop the rows outside the mask, and give their memory back."""
        for name in self._columns:
            self._columns[name] = self[name][mask]
        self._rows = len(self._columns["key"])


class Roll:
    """Rows numbered from 0, made when a number is first seen; never dropped."""

    def __init__(self, **defaults: tuple[DTypeLike, Any, tuple[int, ...]]) -> None:
        """For each column its type, the value of a new row, and the shape of one row."""
        self._rows = 0
        self._defaults = {name: value for name, (_, value, _) in defaults.items()}
        self._columns: dict[str, Array] = {
            name: np.empty((0, *shape), dtype=dtype) for name, (dtype, _, shape) in defaults.items()
        }

    def __len__(self) -> int:
        """One more than the greatest number seen."""
        return self._rows

    def __getitem__(self, name: str) -> Array:
        """A column, as a view that may be written to."""
        return self._columns[name][: self._rows]

    def reach(self, number: int) -> None:
        """Make the rows up to and including `number`."""
        if number < self._rows:
            return
        for name, held in self._columns.items():
            if number >= len(held):
                grown = np.full(
                    (max(number + 1, 2 * len(held)), *held.shape[1:]), self._defaults[name], dtype=held.dtype
                )
                grown[: self._rows] = held[: self._rows]
                self._columns[name] = grown
        self._rows = number + 1
