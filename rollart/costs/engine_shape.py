"""One engine: which model, on which devices, how it is split, and what fits into its memory."""

from dataclasses import dataclass

from rollart.costs.assumptions import Assumptions, assumptions_for
from rollart.domain.device import Device
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.model import KV_BYTES, Model

_ACTIVATION_BYTES = 2.0
_LOGIT_BYTES = 8.0
"""A float32 logit and its float32 probability live at once while sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineShape:
    """A model on `tensor_parallel` devices of one node.

    `expert_parallel` is 1 (every expert is split) or equal to `tensor_parallel` (experts are spread whole).
    Raises InputError for a split the model does not allow, CapacityError for one that leaves the node.
    """

    model: Model
    device: Device
    tensor_parallel: int = 1
    precision: str = "bf16"
    kv_dtype: str = "bf16"
    expert_parallel: int = 1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    gpu_memory_utilization: float = 0.9

    def __post_init__(self) -> None:
        for key in ("tensor_parallel", "expert_parallel", "max_num_seqs", "max_num_batched_tokens"):
            if getattr(self, key) < 1:
                raise InputError(f"engine of {self.model.name}: {key} = {getattr(self, key)} must be 1 or more")
        if not 0 < self.gpu_memory_utilization <= 1:
            value = self.gpu_memory_utilization
            raise InputError(f"engine of {self.model.name}: gpu_memory_utilization = {value} must be in (0, 1]")
        if self.kv_dtype not in KV_BYTES:
            raise InputError(f"KV cache dtype {self.kv_dtype!r} is not known; one of: {', '.join(KV_BYTES)}")
        self._check_split()

    def _check_split(self) -> None:
        tp, heads = self.tensor_parallel, self.model.attention.heads
        if tp > self.device.devices_per_node:
            raise CapacityError(
                f"engine of {self.model.name}: TP {tp} needs {tp} devices in one node, "
                f"a node of {self.device.name} has {self.device.devices_per_node}"
            )
        if heads % tp:
            raise InputError(f"engine of {self.model.name}: TP {tp} must divide its {heads} attention heads")
        if self.expert_parallel not in (1, tp):
            raise InputError(
                f"engine of {self.model.name}: EP {self.expert_parallel} must be 1 or equal to its TP {tp}"
            )
        if self.expert_parallel > 1 and (self.model.experts is None or self.model.experts.count % tp):
            count = self.model.experts.count if self.model.experts else 0
            raise InputError(f"engine of {self.model.name}: EP {self.expert_parallel} must divide its {count} experts")

    @property
    def kv_share(self) -> float:
        """Part of the KV that each device holds; KV heads are copied where there are fewer than devices."""
        kv_heads = self.model.attention.kv_heads
        return max(1, -(-kv_heads // self.tensor_parallel)) / kv_heads

    @property
    def weight_bytes(self) -> float:
        """Bytes of the weights over all devices."""
        return self.model.weight_bytes(self.precision)


def kv_capacity_tokens(shape: EngineShape, assumptions: Assumptions | None = None) -> int:
    """Tokens whose KV fits beside weights, activations and runtime.

    Windowed layers are given their full window for each of `max_num_seqs` requests, the rest is shared by
    the full-attention layers. Raises CapacityError, with the numbers, where no token fits.
    """
    taken = assumptions or assumptions_for(shape.device)
    tokens = _capacity(shape, taken)
    if tokens < 1:
        raise CapacityError(_does_not_fit(shape, taken))
    return tokens


def _capacity(shape: EngineShape, taken: Assumptions) -> int:
    model = shape.model
    free = shape.device.memory_bytes * shape.gpu_memory_utilization
    free -= shape.weight_bytes / shape.tensor_parallel + taken.runtime_bytes + _workspace_bytes(shape)
    layer_bytes = model.layer_kv_bytes_per_token(shape.kv_dtype) * shape.kv_share
    if model.full_layers == 0:
        return int(free / (layer_bytes * model.layers))
    window = (model.window_tokens or 0) * model.windowed_layers * layer_bytes
    return int((free - window * shape.max_num_seqs) / (layer_bytes * model.full_layers))


def _workspace_bytes(shape: EngineShape) -> float:
    """Peak of activations in the widest layer, and of logits."""
    model, tp = shape.model, shape.tensor_parallel
    width = model.dense_width
    if model.experts is not None:
        width = max(width, model.experts.active * model.experts.width + model.experts.shared_width)
    per_token = (4 * model.hidden + 3 * width / tp) * _ACTIVATION_BYTES
    return shape.max_num_batched_tokens * per_token + shape.max_num_seqs * model.vocabulary / tp * _LOGIT_BYTES


def _does_not_fit(shape: EngineShape, taken: Assumptions) -> str:
    device, model = shape.device, shape.model
    needed = next((tp for tp in _wider_splits(shape) if _capacity(_with_tp(shape, tp), taken) >= 1), None)
    remedy = f"needs at least TP {needed}" if needed else f"does not fit in a node of {device.devices_per_node}"
    per_device = (taken.runtime_bytes + _workspace_bytes(shape)) / 1e9
    return (
        f"{model.name} in {shape.precision} needs {shape.weight_bytes / 1e9:.1f} GB of weights over TP "
        f"{shape.tensor_parallel} plus {per_device:.1f} GB per device beside KV; {device.name} has "
        f"{device.memory_bytes / 1e9:.1f} GB x {shape.gpu_memory_utilization:.2f}: {remedy}"
    )


def _wider_splits(shape: EngineShape) -> list[int]:
    heads = shape.model.attention.heads
    widest = shape.device.devices_per_node
    return [tp for tp in range(shape.tensor_parallel + 1, widest + 1) if heads % tp == 0]


def _with_tp(shape: EngineShape, tensor_parallel: int) -> EngineShape:
    return EngineShape(
        model=shape.model,
        device=shape.device,
        tensor_parallel=tensor_parallel,
        precision=shape.precision,
        kv_dtype=shape.kv_dtype,
        max_num_seqs=shape.max_num_seqs,
        max_num_batched_tokens=shape.max_num_batched_tokens,
        gpu_memory_utilization=shape.gpu_memory_utilization,
    )
