"""What the operator formulas need to know of a device: peaks, bandwidth, cache, multiprocessors."""

from dataclasses import dataclass
from typing import NamedTuple

from rollart.domain.device import Device
from rollart.domain.errors import InputError


class Width(NamedTuple):
    """Bytes of one number of the weights and of the inputs of a product, and the peak that multiplies them."""

    weight_bytes: float
    input_bytes: float
    compute: str


WIDTHS = {
    "bf16": Width(2.0, 2.0, "bf16"),
    "fp8": Width(1.0, 1.0, "fp8"),
    "fp8_block": Width(1.0, 1.0, "fp8"),
    "int4": Width(0.5 + 2.5 / 128, 2.0, "bf16"),
    "mxfp4": Width(0.5 + 1 / 32, 2.0, "bf16"),
    "nvfp4": Width(0.5 + 1 / 16, 0.5 + 1 / 16, "fp4"),
}
"""By precision of the operator tables; 4-bit weights with 16-bit inputs are widened before they are multiplied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One device as the operator formulas see it."""

    device: Device
    l2_bytes: float
    multiprocessors: int

    @property
    def bandwidth(self) -> float:
        """Peak of the memory, bytes per second."""
        return self.device.memory_bandwidth_bytes_per_s

    @property
    def link(self) -> float:
        """Peak of the link between devices of a node, bytes per second and direction."""
        return self.device.device_link_bytes_per_s

    def peak(self, precision: str) -> float:
        """Dense FLOP/s for weights of a precision; without units for it the device widens them to bf16."""
        if precision not in WIDTHS:
            raise InputError(f"precision {precision!r} is not known to the operators; one of: {', '.join(WIDTHS)}")
        return self.device.flops_per_s.get(WIDTHS[precision].compute, self.device.flops_per_s["bf16"])
