"""Attention, experts and collectives from measured tables: curves of the nearest measured configuration."""

from collections.abc import Sequence

import numpy as np

from rollart.costs.operators import formulas
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.operators.formulas import Numbers
from rollart.costs.operators.interface import ExpertGroup, Heads
from rollart.costs.tables.grid import Axis, fill_last_axis, fill_rows
from rollart.costs.tables.reader import Table

_KV_TYPES = {"bf16": ("bfloat16", 2.0), "fp8": ("fp8", 1.0)}
SKEWED = "power_law_1.2"
"""Distribution of tokens over experts that is taken where the table has it."""


class Curve:
    """Ratios over one axis."""

    def __init__(self, points: Numbers, measured_over_computed: Numbers) -> None:
        self.axis = Axis.of(points)
        total = np.zeros(len(self.axis.points))
        np.add.at(total, self.axis.places(points), np.log(measured_over_computed))
        self._logs = total / np.bincount(self.axis.places(points))

    def ratio(self, at: Numbers) -> Numbers:
        """Measured over computed seconds."""
        found: Numbers = np.exp(np.interp(np.log(np.maximum(at, 1e-9)), np.log(self.axis.points), self._logs))
        return found


class DecodeGrid:
    """Ratios of measured decode attention over batch and context, for one configuration of heads."""

    def __init__(self, rows: Table, compact: CompactOperators, kv_dtype: str) -> None:
        form = compact.coefficients.fitted("decode", kv_dtype).form
        token_bytes = 2 * _KV_TYPES[kv_dtype][1] * rows["num_key_value_heads"] * rows["head_dim"]
        context = rows["step"] + 1
        computed = formulas.decode_s(
            form, compact.chip, rows["batch_size"], context, rows["num_heads"], token_bytes, warm=True
        )
        self.batches, self.contexts = Axis.of(rows["batch_size"]), Axis.of(context)
        ratios = np.full((len(self.batches.points), len(self.contexts.points)), np.nan)
        ratios[self.batches.places(rows["batch_size"]), self.contexts.places(context)] = np.log(
            rows["latency_s"] / computed
        )
        fill_last_axis(ratios, self.contexts)
        fill_rows(ratios, self.batches)
        self._ratios = ratios

    def ratio(self, batch: int, context: Numbers) -> Numbers:
        """Measured over computed seconds."""
        low, high, part = self.batches.bracket(batch)
        curve = (1 - part) * self._ratios[low] + part * self._ratios[high]
        found: Numbers = np.exp(np.interp(np.log(np.maximum(context, 1.0)), np.log(self.contexts.points), curve))
        return found


def covers_kv(table: Table, kv_dtype: str) -> bool:
    """Whether an attention table has rows of a KV type."""
    return bool((table["kv_cache_dtype"] == _KV_TYPES[kv_dtype][0]).any())


def attention_rows(table: Table, heads: Heads) -> tuple[Table, str]:
    """Rows of full attention of the nearest heads, and a note where they are not the same."""
    name = _KV_TYPES[heads.kv_dtype][0]
    plain = (table["window_size"] == 0) & (table["kv_cache_dtype"] == name)
    wanted = heads.dim, heads.kv, heads.queries
    columns = "head_dim", "num_key_value_heads", "num_heads"
    return nearest(table.where(plain), columns, wanted, (4.0, 2.0, 1.0))


def prefill_curve(rows: Table, compact: CompactOperators, kv_dtype: str) -> Curve:
    """Ratios of measured whole prompts, one at a time, over their length."""
    rows = rows.where(rows["batch_size"] == rows["batch_size"].min())
    form = compact.coefficients.fitted("prefill", kv_dtype).form
    queries, keys = rows["num_heads"] * rows["head_dim"], rows["num_key_value_heads"] * rows["head_dim"]
    moved = 4 * queries + 4 * _KV_TYPES[kv_dtype][1] * keys
    computed = formulas.prefill_s(
        form, compact.chip, rows["batch_size"], rows["isl"], rows["num_heads"], 4 * queries, moved
    )
    return Curve(rows["isl"], rows["latency_s"] / computed)


def expert_curve(table: Table, compact: CompactOperators, group: ExpertGroup, precision: str) -> tuple[Curve, str]:
    """Ratios of the nearest measured experts over tokens, and a note where they are not the same."""
    skewed = table.where(table["distribution"] == SKEWED)
    columns = "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"
    rows, note = nearest(skewed if len(skewed) else table, columns, group, (1.0, 1.0, 2.0, 1.0, 2.0, 2.0))
    form = compact.coefficients.fitted("experts", precision).form
    own = ExpertGroup(*(int(rows[name][0]) for name in (*columns[:2], *columns[2:])))
    computed = formulas.experts_s(form, compact.chip, precision, rows["num_tokens"], **own._asdict())
    return Curve(rows["num_tokens"], rows["latency_s"] / computed), note


def collective_curve(rows: Table, compact: CompactOperators, kind: str, devices: int) -> Curve:
    """Ratios of a measured collective over the bytes of its message; the table counts 2-byte numbers."""
    message = 2.0 * rows["message_size"]
    return Curve(message, rows["latency_s"] / compact.collective_s(kind, message, devices))


def nearest(
    table: Table, columns: Sequence[str], wanted: Sequence[float], weights: Sequence[float]
) -> tuple[Table, str]:
    """Rows of the one configuration that is nearest in octaves, and a note where it is another one."""
    have = np.column_stack([table[name] for name in columns])
    distance = np.abs(np.log2(np.maximum(have, 0.5)) - np.log2(np.maximum(wanted, 0.5))) @ np.asarray(weights)
    best = have[int(np.argmin(distance))]
    note = ""
    if not np.array_equal(best, np.asarray(wanted, dtype=float)):
        names = ", ".join(f"{name} {want:g}" for name, want in zip(columns, wanted, strict=True))
        found = ", ".join(f"{value:g}" for value in best)
        note = f"{names} was not measured; the formula is corrected as for {found}"
    return table.where((have == best).all(axis=1)), note
