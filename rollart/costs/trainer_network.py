"""What the ranks of a training step say to each other, and how long they wait for it.

Volumes per device; b is 2 bytes per number, h the hidden size, t the tokens of a device's part of a
micro-batch:

    TP   two ring all-reduces of t*h*b per layer and pass:  2 * 2 (tp-1)/tp * t*h*b
    CP   keys and values of the other ranks, per layer:     (cp-1) * t * kv entries * b
    EP   tokens out to their experts and back, per layer:   2 * (ep-1)/ep * t/tp * active * h*b
    PP   one hand-over of t*h*b per pass and micro-batch
    DP   float32 gradients reduced, bf16 weights gathered, once a step: (dp*cp-1)/(dp*cp) * parameters * (4+2)
"""

import numpy as np
from numpy.typing import NDArray

from rollart.costs.trainer_shape import TrainerShape, local_parameters
from rollart.costs.training_assumptions import TrainingAssumptions
from rollart.domain.cluster import Link
from rollart.domain.device import Device
from rollart.domain.model import Model

_NUMBER_BYTES = 2.0
_GRADIENT_AND_WEIGHT_BYTES = 6.0


class TrainerNetwork:
    """Seconds of communication of one training step."""

    def __init__(
        self,
        *,
        model: Model,
        device: Device,
        shape: TrainerShape,
        fabric: Link,
        assumptions: TrainingAssumptions,
    ) -> None:
        self._shape = shape
        self._device = device
        self._fabric = fabric
        self._efficiency = assumptions.link_efficiency
        self._per_token_s = self._activations_s_per_token(model, assumptions.exposed_share)
        gradient_bytes = self._gradient_bytes(model) * assumptions.exposed_share
        self._gradients_s = gradient_bytes / self._bandwidth(shape.ranks_per_stage, shape.tp)
        self._hop_s = fabric.latency_s if shape.devices > device.devices_per_node else 0.0

    def step_s(self, micro_tokens: NDArray[np.float64], passes: int) -> float:
        """Communication of all micro-steps, whose slowest ranks hold these tokens, over a number of passes."""
        hops_s = len(micro_tokens) * passes * self._hop_s * (self._shape.pp > 1)
        return float(micro_tokens.sum()) * passes * self._per_token_s + self._gradients_s + hops_s

    def _activations_s_per_token(self, model: Model, exposed_share: float) -> float:
        """One pass, per token of a replica's micro-batch."""
        shape = self._shape
        part = 1 / shape.cp
        row = part * model.hidden * _NUMBER_BYTES
        layers = model.layers / shape.pp
        tensor = 4 * layers * (shape.tp - 1) / shape.tp * row / self._bandwidth(shape.tp, shape.tp)
        kv = part * model.attention.kv_entries_per_token * _NUMBER_BYTES
        context = layers * (shape.cp - 1) * kv / self._bandwidth(shape.tp * shape.cp, shape.tp)
        hand_over = row / self._bandwidth(shape.devices, shape.tp) if shape.pp > 1 else 0.0
        return tensor + context * exposed_share + self._experts_s_per_token(model, row) + hand_over

    def _experts_s_per_token(self, model: Model, row_bytes: float) -> float:
        shape = self._shape
        if model.experts is None or shape.ep == 1:
            return 0.0
        layers = model.expert_layers / shape.pp
        moved = 2 * (shape.ep - 1) / shape.ep * row_bytes / shape.tp * model.experts.active
        return layers * moved / self._bandwidth(shape.ep, self._device.devices_per_node)

    def _gradient_bytes(self, model: Model) -> float:
        """Routed experts are copied over fewer ranks than the rest."""
        dense, routed = local_parameters(model, self._shape)
        dense_copies = self._shape.dp * self._shape.cp
        routed_copies = self._shape.ranks_per_stage / self._shape.expert_split
        shared = dense * (dense_copies - 1) / dense_copies + routed * (routed_copies - 1) / routed_copies
        return shared * _GRADIENT_AND_WEIGHT_BYTES

    def _bandwidth(self, span: int, rings: int) -> float:
        """Of one device in a group that spans a number of devices.

        Inside a node its own link; across nodes the fabric's, which the rings that leave a node share.
        """
        if span <= self._device.devices_per_node:
            return self._device.device_link_bytes_per_s * self._efficiency
        sharing = min(rings, self._device.devices_per_node)
        return self._fabric.bandwidth_bytes_per_s / sharing * self._efficiency
