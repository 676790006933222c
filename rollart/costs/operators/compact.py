"""Operators answered by the compact formulas, with the fitted coefficients of the catalogue."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollart.costs.operators import formulas
from rollart.costs.operators.chip import Chip
from rollart.costs.operators.coefficients import COLLECTIVES, Coefficients, Fitted
from rollart.costs.operators.formulas import Numbers
from rollart.costs.operators.interface import ExpertGroup, Heads, Standing

_MEASURED_RANKS = (2, 4, 8)
_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class CompactOperators:
    """See `rollart.costs.operators.interface.Operators`."""

    coefficients: Coefficients
    _fits: dict[tuple[str, str], Fitted] = field(default_factory=dict, repr=False, compare=False)

    @property
    def chip(self) -> Chip:
        """The device."""
        return self.coefficients.chip

    @property
    def notes(self) -> tuple[str, ...]:
        """None: a formula has no edges."""
        return ()

    def gemm_s(self, rows: Numbers, inputs: int, outputs: int, precision: str) -> Numbers:
        """Formula of a dense product."""
        return _array(formulas.gemm_s(self._form("gemm", precision), self.chip, precision, rows, inputs, outputs))

    def decode_s(self, batch: int, context: Numbers, heads: Heads, *, warm: bool = False) -> Numbers:
        """Formula of decode attention, or the arithmetic alone where that is slower (latent attention)."""
        fit = self._form("decode", heads.kv_dtype)
        read = formulas.decode_s(fit, self.chip, batch, context, heads.queries, heads.kv_token_bytes, warm=warm)
        rate = self.chip.peak("bf16") * self._form("prefill", heads.kv_dtype).compute
        return _array(np.maximum(read, fit.floor_s + batch * context * heads.decode_flops / rate))

    def stream_s(self, batch: int, context: Numbers, heads: Heads) -> Numbers:
        """Reading of the KV from memory, at the rate that decode attention reaches."""
        rate = self.chip.bandwidth * self._form("decode", heads.kv_dtype).bandwidth
        return _array(batch * context * heads.kv_token_bytes / rate)

    def prefill_s(self, tokens: Numbers, heads: Heads) -> Numbers:
        """Formula of prefill attention."""
        fit = self._form("prefill", heads.kv_dtype)
        moved = 2.0 * heads.queries * max(heads.dim, 1) * _ACTIVATION_BYTES + 2.0 * heads.kv_token_bytes
        return _array(formulas.prefill_s(fit, self.chip, 1, tokens, heads.queries, heads.prefill_flops, moved))

    def experts_s(self, tokens: Numbers, group: ExpertGroup, precision: str) -> Numbers:
        """Formula of routed experts whose load follows a power law."""
        fit = self._form("experts", precision)
        return _array(formulas.experts_s(fit, self.chip, precision, tokens, **group._asdict()))

    def collective_s(self, kind: str, message_bytes: Numbers, devices: int) -> Numbers:
        """Formula of a collective; a number of ranks that was not measured takes the next larger one's coefficients."""
        ranks = next((count for count in _MEASURED_RANKS if count >= devices), _MEASURED_RANKS[-1])
        fit = self._form(kind, str(ranks))
        if kind == "all_reduce":
            return _array(formulas.all_reduce_s(fit, self.chip, message_bytes, devices))
        return _array(formulas.collective_s(fit, self.chip, kind, message_bytes, devices))

    def standing(self, operator: str, precision: str) -> Standing:
        """The tables that were fitted, and what stood in for what."""
        fitted = self._fitted(operator, precision)
        own = self.coefficients
        source = f"formula fitted to {own.measured_on} {own.tables}"
        if operator not in COLLECTIVES and fitted.measured != precision:
            source += f", {fitted.measured} efficiencies for {precision} (assumed)"
        if own.measured_on != self.chip.device.name:
            return Standing(f"{source}; {own.measured_on} stands in for {self.chip.device.name} (assumed)", None)
        return Standing(source, fitted.error_pct)

    def _form(self, operator: str, precision: str) -> Any:
        return self._fitted(operator, precision).form

    def _fitted(self, operator: str, precision: str) -> Fitted:
        key = operator, precision
        if key not in self._fits:
            self._fits[key] = self.coefficients.fitted(operator, precision)
        return self._fits[key]


def _array(value: Any) -> Numbers:
    return np.asarray(value, dtype=np.float64)
