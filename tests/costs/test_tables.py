from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollart.catalog.load import devices, models
from rollart.costs.attention import heads_of
from rollart.costs.engine_shape import EngineShape
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.select import engine_costs
from rollart.costs.tables.folder import device_tables, tables_root
from rollart.costs.tables.grid import Axis, fill_last_axis, fill_rows
from rollart.costs.tables.measured import TableOperators
from rollart.costs.tables.products import GemmGrid
from rollart.costs.tables.reader import read_table
from rollart.domain.errors import InputError
from tests.costs.tables_on_disk import COEFFICIENTS, FACTOR, decode_columns, gemm_columns, write

COMPACT = CompactOperators(COEFFICIENTS)
QWEN = EngineShape(model=models()["Qwen3-8B"], device=devices()["H100"])
MEASURED = Path(__file__).resolve().parents[2] / "../shared/hardware/operators"
needs_measured = pytest.mark.skipif(not MEASURED.is_dir(), reason="the operator tables are not beside the checkout")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "h100_sxm" / "vllm-0.24.0"
    write(folder / "gemm_perf.parquet", **gemm_columns())
    write(folder / "generation_attention_perf.parquet", **decode_columns())
    return tmp_path


@pytest.fixture
def operators(root):
    return TableOperators(device_tables("H100", root), COMPACT)


def test_between_and_beyond_its_rows_a_table_corrects_the_formula(operators):
    rows = np.array([1.0, 5.0, 300.0, 100_000.0])
    for inputs, outputs in [(4096, 4096), (2048, 6144), (128, 500_000)]:
        measured = operators.gemm_s(rows, inputs, outputs, "bf16")
        assert measured == pytest.approx(FACTOR * COMPACT.gemm_s(rows, inputs, outputs, "bf16"))


def test_what_lies_beyond_a_table_is_said(operators):
    operators.gemm_s(np.array([8.0]), 4096, 4096, "bf16")
    assert operators.notes == ()
    operators.gemm_s(np.array([8.0]), 4096, 151936, "bf16")
    operators.gemm_s(np.array([9000.0]), 4096, 4096, "bf16")
    operators.gemm_s(np.array([8.0]), 4096, 4096, "fp8")
    assert operators.notes == (
        "gemm bf16: 4096 x 151936 lies beyond the table; it grows as the formula",
        "gemm bf16: 9000 rows lie beyond the table; it grows as the formula",
        "gemm: no table in fp8; formula",
    )


def test_decode_is_corrected_for_a_cold_cache(operators):
    context = np.array([100.0, 1000.0, 8000.0])
    heads = heads_of(QWEN)
    assert operators.decode_s(4, context, heads) == pytest.approx(FACTOR * COMPACT.decode_s(4, context, heads))
    assert (operators.decode_s(4, context, heads) > FACTOR * COMPACT.decode_s(4, context, heads, warm=True)).any()
    assert operators.notes == ()


def test_other_heads_take_the_correction_of_the_nearest(operators):
    heads = heads_of(QWEN)._replace(queries=16)
    context = np.array([1000.0])
    assert operators.decode_s(4, context, heads) == pytest.approx(FACTOR * COMPACT.decode_s(4, context, heads))
    assert operators.notes == (
        "decode: head_dim 128, num_key_value_heads 8, num_heads 16 was not measured; "
        "the formula is corrected as for 128, 8, 32",
    )


def test_what_no_table_has_is_the_formula_and_says_so(operators):
    message = np.array([1e6])
    assert operators.collective_s("all_gather", message, 4) == COMPACT.collective_s("all_gather", message, 4)
    assert operators.notes == ("all_gather: no nccl table; formula",)
    assert operators.standing("prefill", "bf16") == COMPACT.standing("prefill", "bf16")
    assert operators.standing("gemm", "bf16").source == "measured: vllm-0.24.0 of H100"


def test_a_missing_shape_is_filled_from_its_neighbours():
    columns = {name: np.asarray(values) for name, values in gemm_columns().items()}
    keep = ~((columns["n"] == 4096) & (columns["k"] == 4096))
    keep &= ~((columns["m"] == 16) & (columns["n"] == 1024))
    grid = GemmGrid(_table({name: values[keep] for name, values in columns.items()}), COMPACT, "bf16")
    assert grid.ratio(np.array([1.0, 16.0, 77.0]), 4096, 4096) == pytest.approx(FACTOR)
    assert grid.ratio(np.array([16.0]), 4096, 1024) == pytest.approx(FACTOR)


def _table(columns):
    from rollart.costs.tables.reader import Table

    seconds = {"latency_s": columns["latency"] / 1e3}
    return Table("gemm", Path("memory"), columns | seconds)


def test_axis_brackets_between_and_at_its_edges():
    axis = Axis.of(np.array([4.0, 1.0, 16.0, 4.0]))
    assert axis.points.tolist() == [1, 4, 16]
    assert axis.bracket(2.0) == (0, 1, pytest.approx(0.5))
    assert axis.bracket(0.5) == (0, 0, 0.0)
    assert axis.bracket(99.0) == (2, 2, 0.0)
    assert axis.bracket(16.0)[1:] == (2, pytest.approx(1.0))
    assert axis.covers(1.0)
    assert not axis.covers(16.5)


def test_gaps_are_filled_along_both_axes():
    ratios = np.array([[0.0, np.nan, 2.0], [np.nan] * 3, [2.0, 3.0, np.nan]])
    axis = Axis(np.array([1.0, 2.0, 4.0]))
    fill_last_axis(ratios, axis)
    assert ratios[0].tolist() == [0.0, 1.0, 2.0]
    assert ratios[2].tolist() == [2.0, 3.0, 3.0]
    fill_rows(ratios, axis)
    assert ratios[1] == pytest.approx([1.0, 2.0, 2.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": None}, r"a gemm table needs the column 'm'; it has \["),
        ({"latency": None}, "a gemm table needs the column 'latency'"),
        ({"latency": [-1.0]}, r"row 0: latency = -1\.0 must be a number, 0 or more"),
        ({"latency": [0.0]}, r"row 0: latency = 0\.0 must be above 0"),
        ({"latency": [float("nan")]}, "row 0: latency = nan must be a number"),
        ({"latency": ["slow"]}, "column 'latency' must hold numbers, not string"),
        ({"latency": [5e4]}, "half of the latencies are above 1000 ms, so they are hardly milliseconds"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, change, message):
    columns = {"gemm_dtype": ["bfloat16"], "m": [1], "n": [64], "k": [64], "latency": [0.01]} | change
    path = write(tmp_path / "gemm_perf.parquet", **{name: value for name, value in columns.items() if value})
    with pytest.raises(InputError, match=message) as caught:
        read_table(path, "gemm")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_the_unit_of_a_latency_is_read(tmp_path):
    rows = {"gemm_dtype": ["bfloat16"], "m": [1], "n": [64], "k": [64], "latency": [10.0]}
    table = pa.table(rows)
    for unit, seconds in (("us", 1e-5), ("s", 10.0), ("ms", 1e-2)):
        field = pa.field("latency", pa.float64(), metadata={"unit": unit})
        schema = table.schema.set(4, field)
        pq.write_table(table.cast(schema), tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet", "gemm")["latency_s"].tolist() == pytest.approx([seconds])
    pq.write_table(
        table.cast(table.schema.set(4, pa.field("latency", pa.float64(), metadata={"unit": "h"}))), tmp_path / "t"
    )
    with pytest.raises(InputError, match="column 'latency' has the unit 'h'; one of: ms, us, s"):
        read_table(tmp_path / "t", "gemm")


def test_the_kernel_of_a_row_is_read_where_a_table_names_it(tmp_path):
    columns = gemm_columns()
    assert set(read_table(write(tmp_path / "a.parquet", **columns), "gemm")["kernel_source"]) == {""}
    named = columns | {"kernel_source": ["cutlass"] * len(columns["m"])}
    assert set(read_table(write(tmp_path / "b.parquet", **named), "gemm")["kernel_source"]) == {"cutlass"}


def test_a_file_that_is_no_table_and_an_empty_one_are_one_line(tmp_path):
    (tmp_path / "t").write_text("hello")
    with pytest.raises(InputError, match="t: not a readable Parquet table"):
        read_table(tmp_path / "t", "gemm")
    empty = {"gemm_dtype": pa.array([], pa.string()), **{name: pa.array([], pa.float64()) for name in "mnk"}}
    pq.write_table(pa.table(empty | {"latency": pa.array([], pa.float64())}), tmp_path / "t")
    with pytest.raises(InputError, match="t: the table has no rows"):
        read_table(tmp_path / "t", "gemm")


def test_the_newest_version_is_taken_unless_one_is_named(root):
    slower = gemm_columns()
    slower["latency"] = 2 * slower["latency"]
    write(root / "h100_sxm" / "vllm-0.9.1" / "gemm_perf.parquet", **slower)
    newest, named = device_tables("H100", root, None), device_tables("H100", root, "0.9.1")
    assert newest["gemm"].path.parent.name == "vllm-0.24.0"
    assert named["gemm"]["latency_s"] == pytest.approx(2 * newest["gemm"]["latency_s"])
    with pytest.raises(InputError, match=r"no gemm_perf.parquet of vLLM 7\.7 of device H100"):
        device_tables("H100", root, "7.7")


def test_folders_are_looked_for_by_name(root, monkeypatch):
    monkeypatch.delenv("ROLLART_OPERATORS", raising=False)
    with pytest.raises(InputError, match="name their folder in ROLLART_OPERATORS or install aiconfigurator-core"):
        tables_root()
    monkeypatch.setenv("ROLLART_OPERATORS", str(root))
    assert tables_root() == root
    with pytest.raises(InputError, match="nowhere is not a folder"):
        tables_root(Path("nowhere"))
    with pytest.raises(InputError, match=r"no operator tables of device H20 in .*; there are some of: H100"):
        device_tables("H20", root)


def test_an_engine_on_tables(root):
    tables, compact = engine_costs(QWEN, "tables", tables=root), engine_costs(QWEN, "compact")
    host_s, slower = 0.5e-3 + 32 * 10e-6, {}
    for name, costs in (("tables", tables), ("compact", compact)):
        piece = costs.decode(32, 64_000)
        slower[name] = piece.base_s + piece.per_token_s * 64_000 - host_s
    assert slower["tables"] == pytest.approx(FACTOR * slower["compact"], rel=0.06)


@needs_measured
@pytest.mark.parametrize("device", ["A100", "H100", "L40S", "RTX PRO 6000"])
def test_measured_products_of_large_matrices_are_near_the_formula(device):
    table = device_tables(device, MEASURED.resolve())["gemm"]
    mask = (table["gemm_dtype"] == "bfloat16") & (table["n"] >= 1024) & (table["k"] >= 1024)
    rows = table.where(mask)
    from rollart.costs.operators import formulas
    from rollart.costs.operators.coefficients import coefficients_for

    own = coefficients_for(devices()[device])
    seconds = formulas.gemm_s(own.fitted("gemm", "bf16").form, own.chip, "bf16", rows["m"], rows["k"], rows["n"])
    assert np.median(np.abs(seconds / rows["latency_s"] - 1)) < 0.08
