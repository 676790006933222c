"""Operators answered from measured tables, through the formula that they correct."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rollart.costs.operators.chip import Chip
from rollart.costs.operators.coefficients import table_error_pct
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.operators.formulas import Numbers, blended
from rollart.costs.operators.interface import ExpertGroup, Heads, Standing
from rollart.costs.tables import curves
from rollart.costs.tables.products import GemmGrid
from rollart.costs.tables.reader import Table

Answer = TypeVar("Answer")

_GEMM_TYPES = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
_EXPERT_TYPES = _GEMM_TYPES | {"int4": "int4_wo", "mxfp4": "w4a16_mxfp4"}
_TABLE_OF = {"gemm": "gemm", "decode": "generation_attention", "prefill": "context_attention", "experts": "moe"}
_COLD_BLEND = 0.1
"""Next to none of decode attention's fixed part hides behind its reading: within 6 % where KV just leaves the cache."""
CUSTOM_ALL_REDUCE_UP_TO_BYTES = 8.0 * 2**20
"""vLLM reduces larger messages with NCCL."""


class TableOperators:
    """See `rollart.costs.operators.interface.Operators`; what no table covers is the formula's."""

    def __init__(self, tables: Mapping[str, Table], compact: CompactOperators) -> None:
        self._tables = tables
        self._compact = compact
        self._answers: dict[object, object] = {}
        self._notes: dict[str, None] = {}

    @property
    def chip(self) -> Chip:
        """The device."""
        return self._compact.chip

    @property
    def notes(self) -> tuple[str, ...]:
        """Where answers so far lay beyond the tables, one line each."""
        return tuple(self._notes)

    def gemm_s(self, rows: Numbers, inputs: int, outputs: int, precision: str) -> Numbers:
        """Measured product, between and beyond the measured shapes by the formula."""
        computed = self._compact.gemm_s(rows, inputs, outputs, precision)
        table = self._tables["gemm"]
        name = self._once(
            ("type", "gemm", precision), lambda: _measured_type(table["gemm_dtype"], precision, _GEMM_TYPES)
        )
        if name is None:
            self._note(f"gemm: no table in {precision}; formula")
            return computed
        grid = self._once(
            ("gemm", precision),
            lambda: GemmGrid(table.where(table["gemm_dtype"] == name), self._compact, precision),
        )
        if not (grid.inputs.covers(inputs) and grid.outputs.covers(outputs)):
            self._note(f"gemm {precision}: {inputs} x {outputs} lies beyond the table; it grows as the formula")
        if rows.max() > grid.rows.points[-1]:
            self._note(f"gemm {precision}: {rows.max():.0f} rows lie beyond the table; it grows as the formula")
        return computed * grid.ratio(rows, inputs, outputs)

    def decode_s(self, batch: int, context: Numbers, heads: Heads) -> Numbers:
        """Measured decode attention, from a cold cache.

        The tables read the same KV again and again, faster than the memory could where it fits into the cache; what
        the kernel takes on one token, blended with the reading of the KV from memory, is the least that an engine sees.
        """
        computed = self._compact.decode_s(batch, context, heads)
        table = self._attention("generation_attention", heads)
        if table is None:
            return computed
        grid = self._once(("decode", heads), lambda: self._decode_grid(table, heads))
        if context.max() > grid.contexts.points[-1]:
            self._note(
                f"decode: contexts above {grid.contexts.points[-1]:.0f} lie beyond the table; they grow as the formula"
            )
        if not grid.batches.covers(batch):
            self._note(f"decode: {batch} requests lie beyond the table")
        few_s = self._compact.decode_s(batch, np.ones(1), heads) * grid.ratio(batch, np.ones(1))
        cold_s: Numbers = blended(few_s, self._compact.stream_s(batch, context, heads), _COLD_BLEND)
        return np.maximum(computed * grid.ratio(batch, context), cold_s)

    def prefill_s(self, tokens: Numbers, heads: Heads) -> Numbers:
        """Measured prefill attention."""
        computed = self._compact.prefill_s(tokens, heads)
        table = self._attention("context_attention", heads)
        if table is None:
            return computed
        curve = self._once(("prefill", heads), lambda: self._prefill_curve(table, heads))
        if tokens.max() > curve.axis.points[-1]:
            self._note(f"prefill: prompts above {curve.axis.points[-1]:.0f} tokens lie beyond the table")
        return computed * curve.ratio(tokens)

    def experts_s(self, tokens: Numbers, group: ExpertGroup, precision: str) -> Numbers:
        """Measured experts."""
        computed = self._compact.experts_s(tokens, group, precision)
        table = self._tables.get("moe")
        name = None if table is None else _measured_type(table["moe_dtype"], precision, _EXPERT_TYPES)
        if table is None or name is None:
            self._note(f"experts: no table in {precision}; formula")
            return computed
        rows = table.where(table["moe_dtype"] == name)
        curve, note = self._once(
            ("experts", group, precision), lambda: curves.expert_curve(rows, self._compact, group, precision)
        )
        if note:
            self._note(f"experts: {note}")
        return computed * curve.ratio(tokens)

    def collective_s(self, kind: str, message_bytes: Numbers, devices: int) -> Numbers:
        """Measured collective; all-reduce of small messages by the engine's own kernel, where it was measured."""
        own = self._collective(kind, message_bytes, devices, "nccl")
        if kind != "all_reduce" or "custom_allreduce" not in self._tables:
            return own
        small = self._collective(kind, message_bytes, devices, "custom_allreduce")
        return np.where(message_bytes <= CUSTOM_ALL_REDUCE_UP_TO_BYTES, small, own)

    def standing(self, operator: str, precision: str) -> Standing:
        """The table, and its error on shapes left out; the formula's where there is no table."""
        operator_table = _TABLE_OF.get(operator, "nccl")
        table = self._tables.get(operator_table)
        types = {"gemm": _GEMM_TYPES, "experts": _EXPERT_TYPES}.get(operator)
        column = {"gemm": "gemm_dtype", "experts": "moe_dtype"}.get(operator)
        measured = table is not None
        if table is not None and types is not None and column is not None:
            measured = _measured_type(table[column], precision, types) is not None
        if table is None or not measured:
            return self._compact.standing(operator, precision)
        error = table_error_pct(self.chip.device.name, operator, precision)
        return Standing(f"measured: {table.path.parent.name} of {self.chip.device.name}", error)

    def _collective(self, kind: str, message_bytes: Numbers, devices: int, name: str) -> Numbers:
        computed = self._compact.collective_s(kind, message_bytes, devices)
        table = self._tables.get(name)
        if table is None:
            self._note(f"{kind}: no {name} table; formula")
            return computed
        mask = table["num_gpus"] == devices
        if name == "nccl":
            mask &= (table["op_name"] == kind) & (table["nccl_dtype"] == "half")
        else:
            mask &= table["backend"] == "vllm_graph"
        if not mask.any():
            self._note(f"{kind}: {devices} devices were not measured; formula")
            return computed
        curve = self._once(
            (kind, name, devices), lambda: curves.collective_curve(table.where(mask), self._compact, kind, devices)
        )
        return computed * curve.ratio(message_bytes)

    def _attention(self, name: str, heads: Heads) -> Table | None:
        """The table of an attention operator; None, with a note, where it says nothing on such heads."""
        table = self._tables.get(name)
        kind = "latent attention" if not heads.dim else f"a KV cache in {heads.kv_dtype}"
        if table is None or not heads.dim or not self._covers_kv(name, table, heads.kv_dtype):
            self._note(f"{name}: no table for {kind}; formula")
            return None
        return table

    def _covers_kv(self, name: str, table: Table, kv_dtype: str) -> bool:
        return self._once(("KV", name, kv_dtype), lambda: curves.covers_kv(table, kv_dtype))

    def _decode_grid(self, table: Table, heads: Heads) -> curves.DecodeGrid:
        rows, note = curves.attention_rows(table, heads)
        if note:
            self._note(f"decode: {note}")
        return curves.DecodeGrid(rows, self._compact, heads.kv_dtype)

    def _prefill_curve(self, table: Table, heads: Heads) -> curves.Curve:
        rows, note = curves.attention_rows(table, heads)
        if note:
            self._note(f"prefill: {note}")
        return curves.prefill_curve(rows, self._compact, heads.kv_dtype)

    def _once(self, key: object, make: Callable[[], Answer]) -> Answer:
        if key not in self._answers:
            self._answers[key] = make()
        answer: Answer = self._answers[key]  # type: ignore[assignment]
        return answer

    def _note(self, line: str) -> None:
        self._notes[line] = None


def _measured_type(column: NDArray[np.object_], precision: str, types: Mapping[str, str]) -> str | None:
    """The table's name of a precision; fp8 that is scaled by blocks falls back to fp8 that is not."""
    for candidate in (precision, "fp8") if precision == "fp8_block" else (precision,):
        if candidate in types and bool((column == types[candidate]).any()):
            return types[candidate]
    return None
