"""Writes small operator tables whose latencies are a known multiple of the compact formulas."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollart.catalog.load import devices
from rollart.costs.operators import formulas
from rollart.costs.operators.coefficients import coefficients_for

COEFFICIENTS = coefficients_for(devices()["H100"])
FACTOR = 1.25
GEMM_SIDES = (1024, 4096, 16384)
GEMM_ROWS = (1, 16, 256, 4096)


def write(path: Path, **columns: object) -> Path:
    """One Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def gemm_columns() -> dict[str, object]:
    """All products of the sides and rows, FACTOR slower than the formula."""
    grid = np.array([(m, n, k) for m in GEMM_ROWS for n in GEMM_SIDES for k in GEMM_SIDES], dtype=float)
    m, n, k = grid.T
    seconds = formulas.gemm_s(COEFFICIENTS.fitted("gemm", "bf16").form, COEFFICIENTS.chip, "bf16", m, k, n)
    names = ["bfloat16"] * len(m)
    return {"gemm_dtype": names, "m": m, "n": n, "k": k, "latency": 1e3 * FACTOR * seconds}


def decode_columns() -> dict[str, object]:
    """Decode of 8 KV heads and 32 query heads of 128, FACTOR slower than the formula with a warm cache."""
    grid = np.array([(b, s) for b in (1, 8, 64) for s in (127, 1023, 8191, 65535)], dtype=float)
    batch, step = grid.T
    fit = COEFFICIENTS.fitted("decode", "bf16").form
    seconds = formulas.decode_s(fit, COEFFICIENTS.chip, batch, step + 1, 32, 4096.0, warm=True)
    rows = len(batch)
    return {
        "kv_cache_dtype": ["bfloat16"] * rows,
        "batch_size": batch,
        "step": step,
        "num_heads": [32] * rows,
        "num_key_value_heads": [8] * rows,
        "head_dim": [128] * rows,
        "latency": 1e3 * FACTOR * seconds,
    }
