"""Windows as row groups of a Parquet file, and back.

A row group is a window; its rows are sorted by kind, so that a kind's columns are dense within a run and null outside.
One row group a kind would cost more than it saves: each takes milliseconds and kilobytes, however few its rows.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollart.runlog.schema import ABSENT, KIND_NAMED, KINDS, Field, Form, Kind, Record, Side, union_columns
from rollart.runlog.window import Batch, Column, Window

VERSION_KEY = b"rollart.schema_version"
HEADER_KEY = b"rollart.header"

_ARROW = {
    Form.INT: pa.int64(),
    Form.FLOAT: pa.float64(),
    Form.FLAG: pa.bool_(),
    Form.TEXT: pa.string(),
    Form.INT_LIST: pa.list_(pa.int64()),
}
_NAME = pa.dictionary(pa.int8(), pa.string())
_SIDES = pa.array([side.value for side in Side])
_KINDS = pa.array([kind.name for kind in KINDS])
_LEADING = (
    pa.field("seq", pa.int64(), nullable=False),
    pa.field("time_s", pa.float64(), nullable=False),
    pa.field("record", _NAME, nullable=False),
    pa.field("kind", _NAME, nullable=False),
    pa.field("cause_seq", pa.int64()),
)
SCHEMA = pa.schema([*_LEADING, *(pa.field(name, _ARROW[form]) for name, form in union_columns().items())])
"""Columns of the file; fields of records follow `seq`, `time_s`, `record`, `kind`, `cause_seq`."""


def open_writer(path: str, metadata: Mapping[bytes, bytes]) -> pq.ParquetWriter:
    """A writer with the run log's encoding."""
    return pq.ParquetWriter(
        path,
        SCHEMA.with_metadata(dict(metadata)),
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name, form in union_columns().items() if form is Form.TEXT] + ["record", "kind"],
        write_statistics=["seq", "time_s"],
    )


def table_of(window: Window) -> pa.Table:
    """One row group."""
    return pa.concat_tables([_table(batch) for batch in window.batches.values()])


def window_at(file: pq.ParquetFile, group: int) -> Window:
    """Read one row group."""
    table = file.read_row_group(group)
    kinds = table.column("kind").combine_chunks()
    names, codes = kinds.dictionary.to_pylist(), kinds.indices.to_numpy()
    begins = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    batches: dict[type[Record], Batch] = {}
    for begin, end in pairwise(begins):
        batch = _batch(KIND_NAMED[names[codes[begin]]], table.slice(begin, end - begin))
        batches[batch.kind.type] = batch
    return Window(min(int(batch.seq[0]) for batch in batches.values()), batches)


def _table(batch: Batch) -> pa.Table:
    count = len(batch)
    own = {field.column: _array(batch, field) for field in batch.kind.fields}
    columns = [
        pa.array(batch.seq),
        pa.array(batch.time_s),
        _constant(_SIDES, list(Side).index(batch.kind.side), count),
        _constant(_KINDS, KINDS.index(batch.kind), count),
        _nullable(batch.cause_seq),
    ]
    for name in SCHEMA.names[len(_LEADING) :]:
        column = own.get(name)
        columns.append(pa.nulls(count, SCHEMA.field(name).type) if column is None else column)
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _batch(kind: Kind, rows: pa.Table) -> Batch:
    return Batch(
        kind,
        rows.column("seq").to_numpy(),
        rows.column("time_s").to_numpy(),
        _filled(rows.column("cause_seq")),
        columns={field.name: _values(rows.column(field.column), field) for field in kind.fields},
    )


def _constant(names: pa.Array, index: int, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.full(count, index, dtype=np.int8)), names)


def _nullable(values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=values == ABSENT)


def _filled(column: pa.ChunkedArray) -> np.ndarray:
    filled: np.ndarray = column.fill_null(ABSENT).to_numpy()
    return filled


def _array(batch: Batch, field: Field) -> pa.Array:
    if field.form is Form.OPTIONAL_INT:
        return _nullable(batch.ints(field.name))
    return pa.array(batch.column(field.name), type=_ARROW[field.form])


def _values(column: pa.ChunkedArray, field: Field) -> Column:
    if field.form is Form.OPTIONAL_INT:
        return _filled(column)
    if field.form is Form.TEXT:
        texts: Sequence[str] = column.to_pylist()
        return texts
    if field.form is Form.INT_LIST:
        return [tuple(value) for value in column.to_pylist()]
    values: np.ndarray = column.to_numpy()
    return values
