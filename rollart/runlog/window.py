"""A window: some tens of thousands of consecutive records, in columns by kind.

Columns are made when they are first asked for: a simulation that writes no file pays only for what its reducer reads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rollart.runlog.schema import ABSENT, KIND_OF, KINDS, Form, Kind, Record

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
IntLists = Sequence[tuple[int, ...]]
Column = Ints | Floats | Flags | Sequence[Any]

_AT_ONCE = 256
"""Records that stay in the processor's second cache with all that their fields point to."""

_KIND_INDEX = {kind.type: index for index, kind in enumerate(KINDS)}


class Batch:
    """The records of one kind within a window, in order of `seq`."""

    __slots__ = ("_columns", "_records", "cause_seq", "kind", "seq", "time_s")

    def __init__(
        self,
        kind: Kind,
        seq: Ints,
        time_s: Floats,
        cause_seq: Ints,
        *,
        records: list[Record] | None = None,
        columns: dict[str, Column] | None = None,
    ) -> None:
        """Either `records` or all `columns`, by field name; `cause_seq` is ABSENT where there is none."""
        self.kind = kind
        self.seq = seq
        self.time_s = time_s
        self.cause_seq = cause_seq
        self._records = records
        self._columns: dict[str, Column] = {} if columns is None else columns

    def __len__(self) -> int:
        """Records of this kind."""
        return len(self.seq)

    def column(self, name: str) -> Column:
        """Values of a field, in the form that the schema gives it."""
        found = self._columns.get(name)
        if found is None:
            assert self._records is not None
            found = self._columns[name] = _gather(self._records, name, self.kind.field(name).form)
        return found

    def gather(self) -> None:
        """Make all columns, some records at a time: a record is fetched from memory once, not once for every field."""
        records, fields = self._records, self.kind.fields
        if records is None:
            return
        pieces: dict[str, list[Column]] = {field.name: [] for field in fields}
        for begin in range(0, len(records), _AT_ONCE):
            some = records[begin : begin + _AT_ONCE]
            for field in fields:
                pieces[field.name].append(_gather(some, field.name, field.form))
        self._columns = {name: _joined(parts) for name, parts in pieces.items()}

    def ints(self, name: str) -> Ints:
        """Values of an integer field; ABSENT for None."""
        return cast(Ints, self.column(name))

    def floats(self, name: str) -> Floats:
        """Values of a float field."""
        return cast(Floats, self.column(name))

    def flags(self, name: str) -> Flags:
        """Values of a boolean field."""
        return cast(Flags, self.column(name))

    def texts(self, name: str) -> Sequence[str]:
        """Values of a text field."""
        return cast(Sequence[str], self.column(name))

    def int_lists(self, name: str) -> IntLists:
        """Values of a list field."""
        return cast(IntLists, self.column(name))

    def records(self) -> list[Record]:
        """The records themselves; restored from the columns where they came from a file."""
        if self._records is None:
            self._records = _restore(self.kind, self._columns, len(self))
        return self._records


class Window:
    """Consecutive records; every `seq` from `first_seq` to `first_seq + len - 1` is in one batch."""

    __slots__ = ("batches", "first_seq", "size")

    def __init__(self, first_seq: int, batches: Mapping[type[Record], Batch]) -> None:
        """`batches` has no empty ones and the order of `KINDS`."""
        self.first_seq = first_seq
        self.batches = batches
        self.size = sum(len(batch) for batch in batches.values())

    def __len__(self) -> int:
        """Records of all kinds."""
        return self.size

    def get(self, record: type[Record]) -> Batch | None:
        """The records of one kind; None if there are none."""
        return self.batches.get(record)

    def of(self, records: Iterable[type[Record]]) -> Iterator[Batch]:
        """The batches that are there of some kinds."""
        for record in records:
            batch = self.batches.get(record)
            if batch is not None:
                yield batch

    def in_order(self) -> Iterator[tuple[int, float, Record]]:
        """(seq, time_s, record) in order of seq."""
        ordered: list[tuple[float, Record] | None] = [None] * self.size
        for batch in self.batches.values():
            offsets = (batch.seq - self.first_seq).tolist()
            for offset, time_s, record in zip(offsets, batch.time_s.tolist(), batch.records(), strict=True):
                ordered[offset] = (time_s, record)
        for offset, entry in enumerate(ordered):
            assert entry is not None, "a window has a hole"
            yield self.first_seq + offset, *entry


def window_of(first_seq: int, times_s: Sequence[float], causes: Sequence[int], records: Sequence[Record]) -> Window:
    """Sort consecutive records by kind; the three sequences run in parallel."""
    count = len(records)
    time_s = np.fromiter(times_s, dtype=np.float64, count=count)
    cause_seq = np.fromiter(causes, dtype=np.int64, count=count)
    kinds = np.fromiter(map(_KIND_INDEX.__getitem__, map(type, records)), dtype=np.int8, count=count)
    order = np.argsort(kinds, kind="stable")
    bounds = np.searchsorted(kinds[order], np.arange(len(KINDS) + 1))
    batches: dict[type[Record], Batch] = {}
    for kind, begin, end in zip(KINDS, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin < end:
            chosen = order[begin:end]
            batches[kind.type] = Batch(
                KIND_OF[kind.type],
                chosen + first_seq,
                time_s[chosen],
                cause_seq[chosen],
                records=[records[index] for index in chosen.tolist()],
            )
    return Window(first_seq, batches)


def _gather(records: list[Record], name: str, form: Form) -> Column:
    # numpy's fromiter over an attrgetter is twice as fast as np.array over a comprehension.
    values = map(attrgetter(name), records)
    if form is Form.INT:
        return np.fromiter(values, dtype=np.int64, count=len(records))
    if form is Form.FLOAT:
        return np.fromiter(values, dtype=np.float64, count=len(records))
    if form is Form.FLAG:
        return np.fromiter(values, dtype=np.bool_, count=len(records))
    if form is Form.OPTIONAL_INT:
        present = [ABSENT if value is None else value for value in values]
        return np.fromiter(present, dtype=np.int64, count=len(records))
    return list(values)


def _joined(pieces: Sequence[Column]) -> Column:
    if isinstance(pieces[0], np.ndarray):
        return cast(Column, np.concatenate(pieces))
    return list(chain.from_iterable(pieces))


def _restore(kind: Kind, columns: Mapping[str, Column], count: int) -> list[Record]:
    if not kind.fields:
        return [kind.type() for _ in range(count)]
    values: list[Sequence[Any]] = []
    for field in kind.fields:
        column = columns[field.name]
        plain: Sequence[Any] = column.tolist() if isinstance(column, np.ndarray) else column
        if field.form is Form.OPTIONAL_INT:
            plain = [None if value == ABSENT else value for value in plain]
        elif field.enum is not None:
            plain = [field.enum(value) for value in plain]
        values.append(plain)
    names = [field.name for field in kind.fields]
    return [kind.type(**dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]
