"""Windows as row groups of a Parquet file, and back: one row group for each kind within a window."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollart.runlog.schema import ABSENT, KIND_NAMED, KINDS, Field, Form, Side, union_columns
from rollart.runlog.window import Batch, Column

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
    """A writer with the run log's encoding; statistics only where the reader looks for them."""
    return pq.ParquetWriter(
        path,
        SCHEMA.with_metadata(dict(metadata)),
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name, form in union_columns().items() if form is Form.TEXT] + ["record", "kind"],
        write_statistics=["kind", "seq"],
    )


def table_of(batch: Batch) -> pa.Table:
    """One row group."""
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


def batch_of(file: pq.ParquetFile, group: int) -> Batch:
    """Read one row group, only the columns that its kind has."""
    kind = KIND_NAMED[file.metadata.row_group(group).column(SCHEMA.get_field_index("kind")).statistics.min]
    names = ["seq", "time_s", "cause_seq", *(field.column for field in kind.fields)]
    table = file.read_row_group(group, columns=names)
    return Batch(
        kind,
        table.column("seq").to_numpy(),
        table.column("time_s").to_numpy(),
        _filled(table.column("cause_seq")),
        columns={field.name: _values(table.column(field.column), field) for field in kind.fields},
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
