"""The fitted coefficients of the catalogue's devices, with their errors; relatives lend theirs where none exist.

Owns the reading of `catalog/operators.yaml` and `catalog/table_errors.yaml` (written by experiments/fit_operators.py
and experiments/operators.py) and of `catalog/chips.yaml`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from rollart.costs.operators.chip import Chip
from rollart.costs.operators.formulas import AllReduceFit, CollectiveFit, DecodeFit, ExpertFit, GemmFit, PrefillFit
from rollart.domain.device import Device
from rollart.domain.errors import InputError

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
FORMS: Mapping[str, Any] = {
    "gemm": GemmFit,
    "decode": DecodeFit,
    "prefill": PrefillFit,
    "experts": ExpertFit,
    **dict.fromkeys(COLLECTIVES, CollectiveFit),
    "all_reduce": AllReduceFit,
}
_STAND_INS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "gemm": {"fp8_block": ("fp8", "bf16"), "fp8": ("bf16",), "int4": ("bf16",), "mxfp4": ("bf16",), "nvfp4": ("fp8",)},
    "experts": {"fp8_block": ("fp8", "bf16"), "fp8": ("bf16",), "int4": ("mxfp4", "bf16"), "mxfp4": ("bf16",)},
    "decode": {"fp8": ("bf16",)},
    "prefill": {"fp8": ("bf16",)},
}
"""Whose coefficients serve a precision that has none of its own, best first."""


class Fitted(NamedTuple):
    """Coefficients of one operator in one precision."""

    form: Any
    error_pct: float | None
    """Median absolute error on whole shapes left out of the fit; on rows, where all rows have one shape."""
    measured: str
    """The precision that was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """All coefficients of one device."""

    chip: Chip
    measured_on: str
    """The device that was measured: this one, or a relative."""
    tables: str
    fits: Mapping[str, Mapping[str, Mapping[str, float]]]

    def fitted(self, operator: str, precision: str) -> Fitted:
        """Coefficients of an operator; InputError where neither the precision nor a stand-in was measured."""
        known = self.fits.get(operator, {})
        for candidate in (precision, *_STAND_INS.get(operator, {}).get(precision, ())):
            if candidate in known:
                figures = dict(known[candidate])
                error = figures.pop("error_pct", None)
                return Fitted(FORMS[operator](**figures), error, candidate)
        raise InputError(
            f"device {self.chip.device.name}: no operator coefficients for {operator} in {precision}; "
            f"there are: {', '.join(map(str, known)) or 'none'}"
        )


def coefficients_for(device: Device) -> Coefficients:
    """Coefficients of a device; InputError, naming those that have some, where it has none."""
    chips, fits = _packaged("chips.yaml"), _packaged("operators.yaml")
    entry = chips.get(device.name)
    measured_on = device.name if device.name in fits else (entry or {}).get("like")
    if entry is None or measured_on not in fits:
        raise InputError(
            f"device {device.name} has no operator coefficients, costs: roofline needs none; "
            f"there are some of: {', '.join(chips)}"
        )
    chip = Chip(device=device, l2_bytes=float(entry["l2_bytes"]), multiprocessors=int(entry["multiprocessors"]))
    own = fits[measured_on]
    return Coefficients(chip=chip, measured_on=measured_on, tables=own["tables"], fits=own["fits"])


def table_error_pct(device: str, operator: str, precision: str) -> float | None:
    """Median absolute error of a device's tables on shapes left out of them; None where none was measured."""
    errors = _packaged("table_errors.yaml").get(device) or {}
    error: float | None = (errors.get(operator) or {}).get(precision)
    return error


@lru_cache
def _packaged(name: str) -> dict[str, Any]:
    text = files("rollart.catalog").joinpath(name).read_text(encoding="utf-8")
    entries: dict[str, Any] = yaml.safe_load(text)
    return entries
