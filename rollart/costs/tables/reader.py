"""Reads one operator table: a Parquet file with one measured shape per row and its latency in milliseconds.

Owns what columns each table must have. A table is handed on as NumPy columns, with `latency_s` in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rollart.domain.errors import InputError

COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gemm": (("gemm_dtype",), ("m", "n", "k")),
    "context_attention": (
        ("kv_cache_dtype",),
        ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim"),
    ),
    "generation_attention": (
        ("kv_cache_dtype",),
        ("batch_size", "step", "num_heads", "num_key_value_heads", "head_dim"),
    ),
    "moe": (
        ("moe_dtype", "distribution"),
        ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"),
    ),
    "custom_allreduce": (("backend",), ("num_gpus", "message_size")),
    "nccl": (("op_name", "nccl_dtype"), ("num_gpus", "message_size")),
}
"""Text and number columns by operator, beside `latency`."""
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "context_attention": ("window_size",),
    "generation_attention": ("window_size",),
}
"""Number columns that older tables lack; read as 0."""
_KERNEL = "kernel_source"
"""Text column that says which kernel was measured; empty where a table lacks it."""
_UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0}
_SLOWEST_MS = 1e5
"""No kernel of a model takes longer; a latency above it is in another unit."""


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of one operator's table."""

    operator: str
    path: Path
    columns: Mapping[str, NDArray[Any]]

    def __getitem__(self, column: str) -> NDArray[Any]:
        """One column."""
        return self.columns[column]

    def __len__(self) -> int:
        """Rows."""
        return len(self.columns["latency_s"])

    def where(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Table":
        """The rows for which a mask holds, or those at the given places, in their order."""
        return Table(self.operator, self.path, {name: values[rows] for name, values in self.columns.items()})


def read_table(path: Path, operator: str) -> Table:
    """Read a table; InputError names the file and the column that is missing, not a number, or out of range.

    Latencies are milliseconds unless the column's metadata says `unit` = ms, us or s.
    """
    try:
        raw = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a readable Parquet table ({str(error).splitlines()[0]})") from None
    texts, numbers = COLUMNS[operator]
    missing = [name for name in (*texts, *numbers, "latency") if name not in raw.column_names]
    if missing:
        raise InputError(f"{path}: a {operator} table needs the column {missing[0]!r}; it has {raw.column_names}")
    columns: dict[str, NDArray[Any]] = {name: raw[name].to_numpy(zero_copy_only=False) for name in texts}
    columns |= {name: _numbers(path, raw, name, least=0.0) for name in numbers}
    for name in _OPTIONAL.get(operator, ()):
        present = name in raw.column_names
        columns[name] = _numbers(path, raw, name, least=0.0) if present else np.zeros(raw.num_rows)
    has_kernel = _KERNEL in raw.column_names
    columns[_KERNEL] = raw[_KERNEL].to_numpy(zero_copy_only=False) if has_kernel else np.full(raw.num_rows, "")
    columns["latency_s"] = _seconds(path, raw)
    return Table(operator, path, columns)


def _numbers(path: Path, raw: pa.Table, name: str, least: float) -> NDArray[np.float64]:
    try:
        values: NDArray[np.float64] = raw[name].to_numpy(zero_copy_only=False).astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{path}: column {name!r} must hold numbers, not {raw.schema.field(name).type}") from None
    bad = np.flatnonzero(~(values >= least) | ~np.isfinite(values))
    if bad.size:
        raise InputError(f"{path}: row {bad[0]}: {name} = {values[bad[0]]} must be a number, {least:g} or more")
    return values


def _seconds(path: Path, raw: pa.Table) -> NDArray[np.float64]:
    values = _numbers(path, raw, "latency", least=0.0)
    if not values.size:
        raise InputError(f"{path}: the table has no rows")
    unit = (raw.schema.field("latency").metadata or {}).get(b"unit", b"ms").decode()
    if unit not in _UNITS:
        raise InputError(f"{path}: column 'latency' has the unit {unit!r}; one of: {', '.join(_UNITS)}")
    zero = np.flatnonzero(values <= 0)
    if zero.size:
        raise InputError(f"{path}: row {zero[0]}: latency = {values[zero[0]]} must be above 0")
    if unit == "ms" and np.median(values) > _SLOWEST_MS / 100:
        raise InputError(
            f"{path}: half of the latencies are above {_SLOWEST_MS / 100:g} ms, so they are hardly milliseconds; "
            "say the unit (ms, us or s) in the metadata of the column"
        )
    return values * _UNITS[unit]
