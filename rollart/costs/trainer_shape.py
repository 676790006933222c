"""How training is cut over its devices, and what each device has to hold.

Layout of Megatron: tensor ranks closest together, then context, data and pipeline. Experts are spread over
`ep` of the ranks of one pipeline stage, or split over the tensor ranks where `ep` is 1. The optimiser state
is sharded over the data and context ranks, weights and gradients are not.
"""

from dataclasses import dataclass

from rollart.costs.training_assumptions import TrainingAssumptions
from rollart.domain.device import Device
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.model import Model
from rollart.domain.training import Training

_WEIGHT_BYTES = 2.0
_GRADIENT_BYTES = 4.0
"""Gradients are accumulated over micro-steps in float32."""
_OPTIMIZER_BYTES = 12.0
"""Adam: float32 master weights and two moments."""
_LOGIT_BYTES = 8.0
"""A bf16 logit, its float32 copy and a bf16 gradient."""
_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerShape:
    """Ranks of each kind of parallelism; their product is the number of devices.

    Raises InputError where it is not, or where a split does not divide.
    """

    devices: int
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for key in ("devices", "tp", "pp", "dp", "cp", "ep"):
            if getattr(self, key) < 1:
                raise InputError(f"trainer: {key} = {getattr(self, key)} must be 1 or more")
        product = self.tp * self.pp * self.dp * self.cp
        if product != self.devices:
            parts = f"TP {self.tp} x PP {self.pp} x DP {self.dp} x CP {self.cp} = {product}"
            raise InputError(f"trainer: {parts} must equal its {self.devices} devices")
        if self.ranks_per_stage % self.ep:
            raise InputError(f"trainer: EP {self.ep} must divide the {self.ranks_per_stage} devices of a stage")

    @property
    def ranks_per_stage(self) -> int:
        """Devices of one pipeline stage."""
        return self.devices // self.pp

    @property
    def expert_split(self) -> int:
        """Devices over which the experts of a stage are cut."""
        return self.ep if self.ep > 1 else self.tp

    def check_model(self, model: Model, device: Device) -> None:
        """Raise InputError or CapacityError where this cut is impossible for a model on a device."""
        if model.attention.heads % self.tp:
            raise InputError(f"trainer: TP {self.tp} must divide the {model.attention.heads} heads of {model.name}")
        if self.pp > model.layers:
            raise InputError(f"trainer: PP {self.pp} must not exceed the {model.layers} layers of {model.name}")
        count = model.experts.count if model.experts else 1
        if count % self.ep:
            raise InputError(f"trainer: EP {self.ep} must divide the {count} experts of {model.name}")
        if self.tp > device.devices_per_node:
            raise CapacityError(
                f"trainer: TP {self.tp} needs {self.tp} devices in one node, "
                f"a node of {device.name} has {device.devices_per_node}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerMemory:
    """Bytes on the fullest device, by use."""

    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    logit_bytes: float
    runtime_bytes: float

    @property
    def total_bytes(self) -> float:
        """Sum of all uses."""
        state = self.weight_bytes + self.gradient_bytes + self.optimizer_bytes
        return state + self.activation_bytes + self.logit_bytes + self.runtime_bytes


def local_parameters(model: Model, shape: TrainerShape) -> tuple[float, float]:
    """Parameters on the fullest device: (all but routed experts, routed experts).

    A stage holds its share of the layers; the first or last also an embedding table.
    """
    routed = 0
    if model.experts is not None:
        routed = model.expert_layers * model.experts.count * model.expert_parameters
    tables = model.embedding_parameters * (1 if model.tied_embeddings else 2)
    tables_here = tables if shape.pp == 1 else model.embedding_parameters
    body = model.parameters - routed - tables
    return (body / shape.pp + tables_here) / shape.tp, routed / (shape.pp * shape.expert_split)


def trainer_memory(model: Model, shape: TrainerShape, training: Training, taken: TrainingAssumptions) -> TrainerMemory:
    """Bytes on the fullest device with a full micro-batch, or one trajectory at the context limit."""
    dense, routed = local_parameters(model, shape)
    tokens = max(training.micro_batch_tokens, training.context_limit) / shape.cp
    dense_shards = shape.dp * shape.cp
    routed_shards = shape.ranks_per_stage / shape.expert_split
    optimizer = (dense / dense_shards + routed / routed_shards) * _OPTIMIZER_BYTES
    return TrainerMemory(
        weight_bytes=(dense + routed) * _WEIGHT_BYTES,
        gradient_bytes=(dense + routed) * _GRADIENT_BYTES,
        optimizer_bytes=optimizer,
        activation_bytes=_activation_bytes(model, shape, training, tokens),
        logit_bytes=tokens * model.vocabulary / shape.tp * _LOGIT_BYTES,
        runtime_bytes=taken.runtime_bytes,
    )


def _activation_bytes(model: Model, shape: TrainerShape, training: Training, tokens: float) -> float:
    """Saved layer inputs of the micro-batches in flight, and what one layer (or every layer) keeps inside."""
    attention = sum(matrix.outputs for matrix in model.attention.matrices(model.hidden)[:-1])
    width = model.dense_width
    if model.experts is not None:
        width = max(width, model.experts.active * model.experts.width + model.experts.shared_width)
    inside = tokens / shape.tp * (6 * model.hidden + 2 * attention + 4 * width) * _ACTIVATION_BYTES
    layers_here = model.layers / shape.pp
    in_flight = shape.pp
    if not training.recompute_activations:
        return layers_here * inside * in_flight
    return layers_here * tokens / shape.tp * model.hidden * _ACTIVATION_BYTES * in_flight + inside


def check_memory(
    model: Model, device: Device, shape: TrainerShape, training: Training, taken: TrainingAssumptions
) -> TrainerMemory:
    """What each device holds; raises CapacityError with the numbers where that is more than it has."""
    need = trainer_memory(model, shape, training, taken)
    bound = device.memory_bytes * taken.memory_utilization
    if need.total_bytes <= bound:
        return need
    raise CapacityError(
        f"training {model.name} on {shape.devices} {device.name} (TP {shape.tp} PP {shape.pp} DP {shape.dp} "
        f"CP {shape.cp} EP {shape.ep}) needs {need.total_bytes / 1e9:.1f} GB per device (weights "
        f"{need.weight_bytes / 1e9:.1f}, gradients {need.gradient_bytes / 1e9:.1f}, optimiser "
        f"{need.optimizer_bytes / 1e9:.1f}, activations {need.activation_bytes / 1e9:.1f}, logits "
        f"{need.logit_bytes / 1e9:.1f}), it has {device.memory_bytes / 1e9:.1f} GB x "
        f"{taken.memory_utilization:.2f}: {_remedy(model, shape, training)}"
    )


def _remedy(model: Model, shape: TrainerShape, training: Training) -> str:
    """The first cut to widen: the longest part decides."""
    if training.micro_batch_tokens > training.context_limit:
        return f"lower micro_batch_tokens (now {training.micro_batch_tokens}), or raise TP or CP"
    if model.experts is not None and shape.ep == 1:
        return "raise EP, TP or PP"
    return "raise TP, CP or PP"
