"""One kind of device as its data sheet describes it: memory, speed, links, price.

Nothing here is measured; what a device reaches of its peaks is the business of `rollart.costs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rollart.domain.errors import InputError

DeviceKind = Literal["gpu", "cpu"]

COMPUTE_PRECISION = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "int4": "bf16", "mxfp4": "bf16"}
"""Precision of the multiplication by the precision of the stored weights; 4-bit weights are widened first."""

_POSITIVE_FIELDS = (
    "memory_bytes",
    "memory_bandwidth_bytes_per_s",
    "device_link_bytes_per_s",
    "host_link_bytes_per_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device kind. Rates are peaks; links count one direction per device.

    Raises InputError where a figure is not positive or no bf16 peak is given.
    """

    name: str
    kind: DeviceKind
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    flops_per_s: Mapping[str, float] = field(hash=False)
    """Dense peak by precision ("bf16" always; "fp8", "fp4" where the device has them)."""
    device_link_bytes_per_s: float
    """Between devices of one node (NVLink, PCIe, shared memory)."""
    host_link_bytes_per_s: float
    price_per_hour: float
    """Relative to H20 = 1.00."""
    devices_per_node: int = 8
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    """Where each figure comes from, by field."""

    def __post_init__(self) -> None:
        if self.kind not in ("gpu", "cpu"):
            raise InputError(f'device {self.name}: kind must be "gpu" or "cpu", not {self.kind!r}')
        for key in _POSITIVE_FIELDS:
            if not 0 < getattr(self, key) < float("inf"):
                raise InputError(f"device {self.name}: {key} must be above 0, not {getattr(self, key)}")
        if not 0 <= self.price_per_hour < float("inf"):
            raise InputError(f"device {self.name}: price_per_hour must be 0 or more, not {self.price_per_hour}")
        if self.devices_per_node < 1:
            raise InputError(f"device {self.name}: devices_per_node must be 1 or more, not {self.devices_per_node}")
        if "bf16" not in self.flops_per_s:
            raise InputError(f"device {self.name}: flops_per_s must name a bf16 peak")
        for precision, peak in self.flops_per_s.items():
            if not 0 < peak < float("inf"):
                raise InputError(f"device {self.name}: flops_per_s.{precision} must be above 0, not {peak}")

    def peak_flops_per_s(self, weight_precision: str) -> float:
        """Dense peak for weights stored in a precision.

        A device without fp8 units widens fp8 weights to bf16 first, so it computes at its bf16 peak.
        """
        compute = COMPUTE_PRECISION.get(weight_precision)
        if compute is None:
            known = ", ".join(COMPUTE_PRECISION)
            raise InputError(f"precision {weight_precision!r} is not known; one of: {known}")
        return self.flops_per_s.get(compute, self.flops_per_s["bf16"])
