"""Matrix products, experts and all-reduces of one engine iteration, as functions of its token count.

Every product is the slower of computing and reading, plus the floor of a kernel:

    max(2 * tokens * in * out / (tp * efficiency * peak),
        (weights / tp + activations) / (efficiency * bandwidth))
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rollart.costs.assumptions import Assumptions
from rollart.costs.engine_shape import EngineShape
from rollart.domain.attention import Matrix
from rollart.domain.model import BYTES_PER_QUANTISED_WEIGHT, UNQUANTISED_BYTES, Experts

Tokens = TypeVar("Tokens", float, NDArray[np.float64])

_ACTIVATION_BYTES = 2.0
SAMPLING_BYTES_PER_LOGIT = 12.0
"""Sampling passes over float32 logits about three times (softmax, mask, draw)."""


class Product(NamedTuple):
    """One kind of matrix product of an iteration."""

    layers: int
    compute_s_per_token: float
    weights_s: float
    activation_s_per_token: float

    def seconds(self, tokens: float, kernel_floor_s: float) -> float:
        """Time of this product in all its layers."""
        compute = self.compute_s_per_token * tokens
        memory = self.weights_s + self.activation_s_per_token * tokens
        return self.layers * (max(compute, memory) + kernel_floor_s)


class Products:
    """Everything of an iteration that depends on how many tokens it computes, and not on their context."""

    def __init__(self, shape: EngineShape, assumptions: Assumptions) -> None:
        self._shape = shape
        self._floor_s = assumptions.kernel_floor_s
        self._taken = assumptions
        self._bandwidth = shape.device.memory_bandwidth_bytes_per_s * assumptions.bandwidth_efficiency
        self._dense = tuple(self._dense_products())
        self._head = self._product(1, shape.model.head, wide=True)

    def linear_s(self, tokens: int) -> float:
        """All layers of `tokens` tokens, without attention over the context and without the output head."""
        dense = sum(product.seconds(tokens, self._floor_s) for product in self._dense)
        small = small_kernels_s(self._shape, self._taken, float(tokens))
        return dense + self._expert_s(tokens) + small + self._all_reduce_s(tokens)

    def head_s(self, requests: int) -> float:
        """Output head, sampling and host time of `requests` requests that each get one token."""
        logits = self._shape.model.vocabulary * SAMPLING_BYTES_PER_LOGIT / self._bandwidth
        host = self._taken.iteration_overhead_s + requests * self._taken.request_overhead_s
        return self._head.seconds(requests, self._floor_s) + requests * logits + host

    def _dense_products(self) -> Iterator[Product]:
        model = self._shape.model
        for matrix in model.attention.matrices(model.hidden):
            yield self._product(model.layers, matrix)
        if model.dense_layers:
            for matrix in model.mlp_matrices(model.dense_width):
                yield self._product(model.dense_layers, matrix)
        if model.experts is not None:
            yield self._product(model.expert_layers, Matrix(model.hidden, model.experts.count), wide=True)
            if model.experts.shared_width:
                for matrix in model.mlp_matrices(model.experts.shared_width):
                    yield self._product(model.expert_layers, matrix)

    def _product(self, layers: int, matrix: Matrix, *, wide: bool = False) -> Product:
        """`wide` matrices stay in bf16; so does all but the experts in mxfp4."""
        shape = self._shape
        wide = wide or shape.precision == "mxfp4"
        peak = shape.device.peak_flops_per_s("bf16" if wide else shape.precision)
        weight_bytes = UNQUANTISED_BYTES if wide else BYTES_PER_QUANTISED_WEIGHT[shape.precision]
        share = 1 / shape.tensor_parallel
        activations = (matrix.inputs + matrix.outputs) * _ACTIVATION_BYTES * share
        return Product(
            layers=layers,
            compute_s_per_token=2 * matrix.parameters * share / (peak * self._taken.gemm_efficiency),
            weights_s=matrix.parameters * weight_bytes * share / self._bandwidth,
            activation_s_per_token=activations / self._bandwidth,
        )

    def _expert_s(self, tokens: int) -> float:
        experts = self._shape.model.experts
        if experts is None:
            return 0.0
        shape = self._shape
        peak = shape.device.peak_flops_per_s(shape.precision) * self._taken.gemm_efficiency
        weight_bytes = BYTES_PER_QUANTISED_WEIGHT[shape.precision]
        imbalance = self._taken.expert_imbalance if shape.expert_parallel > 1 else 1.0
        seconds = 0.0
        for matrix in shape.model.mlp_matrices(experts.width):
            visits = tokens * experts.active
            compute = 2 * matrix.parameters * visits / peak
            moved = matrix.parameters * distinct_experts(experts, tokens) * weight_bytes
            moved += visits * (matrix.inputs + matrix.outputs) * _ACTIVATION_BYTES
            busy = max(compute, moved / self._bandwidth) * imbalance / shape.tensor_parallel
            seconds += busy + self._floor_s
        return seconds * shape.model.expert_layers

    def _all_reduce_s(self, tokens: int) -> float:
        """Two ring all-reduces per layer: each device sends 2 (tp - 1) / tp of the message."""
        model, tp = self._shape.model, self._shape.tensor_parallel
        if tp == 1:
            return 0.0
        link = self._shape.device.device_link_bytes_per_s * self._taken.link_efficiency
        message = tokens * model.hidden * _ACTIVATION_BYTES
        once = self._taken.all_reduce_latency_s + 2 * (tp - 1) / tp * message / link
        return 2 * model.layers * once


def distinct_experts(experts: Experts, tokens: float) -> float:
    """Expected number of experts of a layer that `tokens` tokens visit, if each picks uniformly.

    A token misses a given expert with probability 1 - active / count.
    """
    return experts.count * float(1 - (1 - experts.active / experts.count) ** tokens)


def small_kernels_s(shape: EngineShape, assumptions: Assumptions, tokens: Tokens) -> Tokens:
    """Two residual norms, rotary embedding and activation: memory traffic and kernel floors."""
    model, tp = shape.model, shape.tensor_parallel
    attention_inputs = sum(matrix.outputs for matrix in model.attention.matrices(model.hidden)[:-1])
    per_layer = 8 * model.hidden + attention_inputs / tp
    numbers = model.layers * per_layer + model.dense_layers * 3 * model.dense_width / tp
    if model.experts is not None:
        width = model.experts.active * model.experts.width + model.experts.shared_width
        numbers += model.expert_layers * 3 * width / tp
    bandwidth = shape.device.memory_bandwidth_bytes_per_s * assumptions.bandwidth_efficiency
    floors = model.layers * assumptions.small_kernels_per_layer * assumptions.kernel_floor_s
    return floors + tokens * numbers * _ACTIVATION_BYTES / bandwidth
