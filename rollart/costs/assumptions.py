"""What a device reaches of its data sheet: generic numbers, the same for every device of a kind.

They are assumptions with reasons, not measurements of any one device; a measured table or a calibration
replaces them. The CPU's were guessed with one small model on one core in view; no GPU's was chosen to meet a figure
that it is compared with.
"""

from dataclasses import dataclass

from rollart.domain.device import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Efficiencies (0..1] and fixed times of the kernels of one kind of device."""

    gemm_efficiency: float
    """Of peak FLOP/s in large matrix products: power limits and tile edges take the rest."""
    bandwidth_efficiency: float
    """Of memory bandwidth when streaming weights or KV: refresh and row changes take the rest."""
    attention_efficiency: float
    """Of peak FLOP/s in prefill attention: softmax runs beside the tensor cores; causal tiles waste some."""
    link_efficiency: float
    """Of a link's bandwidth in large collectives: protocol and flags."""
    kernel_floor_s: float
    """Start and drain of one kernel inside a captured graph."""
    small_kernels_per_layer: int
    """Norms, rotary embedding, activation, cache write: what is neither a product nor attention."""
    all_reduce_latency_s: float
    """Of one all-reduce of a small message within a node."""
    iteration_overhead_s: float
    """Of the host per iteration that asynchronous scheduling does not hide."""
    request_overhead_s: float
    """Of the host per request and iteration (sampling outputs, detokenising, block tables)."""
    expert_imbalance: float
    """Most loaded device over the mean when experts are spread over devices."""
    runtime_bytes: float
    """Memory taken by the runtime, captured graphs and communication buffers on each device."""


GPU_ASSUMPTIONS = Assumptions(
    gemm_efficiency=0.7,
    bandwidth_efficiency=0.8,
    attention_efficiency=0.45,
    link_efficiency=0.75,
    kernel_floor_s=2e-6,
    small_kernels_per_layer=6,
    all_reduce_latency_s=8e-6,
    iteration_overhead_s=0.5e-3,
    request_overhead_s=10e-6,
    expert_imbalance=1.3,
    runtime_bytes=2e9,
)
CPU_ASSUMPTIONS = Assumptions(
    gemm_efficiency=0.5,
    bandwidth_efficiency=0.7,
    attention_efficiency=0.3,
    link_efficiency=0.7,
    kernel_floor_s=5e-6,
    small_kernels_per_layer=6,
    all_reduce_latency_s=50e-6,
    iteration_overhead_s=2e-3,
    request_overhead_s=50e-6,
    expert_imbalance=1.3,
    runtime_bytes=1e9,
)


def assumptions_for(device: Device) -> Assumptions:
    """The generic assumptions of a device's kind."""
    return GPU_ASSUMPTIONS if device.kind == "gpu" else CPU_ASSUMPTIONS
