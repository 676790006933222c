"""What training reaches of a device's data sheet: generic numbers with reasons, not measurements."""

from dataclasses import dataclass

from rollart.domain.device import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAssumptions:
    """Efficiencies (0..1] and fixed sizes of training on one kind of device."""

    product_efficiency: float
    """Of peak FLOP/s: 0.7 in large products, less a fifth for norms, activations and loss between them."""
    attention_efficiency: float
    """Of peak FLOP/s in attention forward and backward."""
    bandwidth_efficiency: float
    """Of memory bandwidth in the optimiser."""
    link_efficiency: float
    """Of a link's bandwidth in large collectives."""
    exposed_share: float
    """Part of gradient, parameter and context exchange that compute does not hide."""
    expert_imbalance: float
    """Most loaded device over the mean when experts are spread over devices."""
    memory_utilization: float
    """Part of a device's memory that may be planned for; fragmentation takes the rest."""
    runtime_bytes: float
    """Memory of the runtime and of communication buffers on each device."""


GPU_TRAINING = TrainingAssumptions(
    product_efficiency=0.55,
    attention_efficiency=0.35,
    bandwidth_efficiency=0.8,
    link_efficiency=0.75,
    exposed_share=0.5,
    expert_imbalance=1.3,
    memory_utilization=0.92,
    runtime_bytes=3e9,
)
CPU_TRAINING = TrainingAssumptions(
    product_efficiency=0.5,
    attention_efficiency=0.3,
    bandwidth_efficiency=0.7,
    link_efficiency=0.7,
    exposed_share=1.0,
    expert_imbalance=1.3,
    memory_utilization=0.92,
    runtime_bytes=0.5e9,
)


def training_assumptions_for(device: Device) -> TrainingAssumptions:
    """The generic assumptions of a device's kind."""
    return GPU_TRAINING if device.kind == "gpu" else CPU_TRAINING
