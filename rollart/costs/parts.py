"""The parts of an engine iteration that depend on how many tokens or requests it computes, not on their context.

A part knows its operator, so that the same list gives the time of an iteration and the account of where it goes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rollart.costs.assumptions import Assumptions
from rollart.costs.engine_shape import EngineShape
from rollart.costs.operators.formulas import Numbers
from rollart.costs.operators.interface import ExpertGroup, Operators
from rollart.costs.products import SAMPLING_BYTES_PER_LOGIT, small_kernels_s
from rollart.domain.attention import LatentAttention, Matrix
from rollart.domain.model import BYTES_PER_QUANTISED_WEIGHT, UNQUANTISED_BYTES

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of work, over all its layers, on one device."""

    name: str
    operator: str
    """gemm, experts, all_reduce, or "" where no operator table has it."""
    precision: str
    seconds: Callable[[Numbers], Numbers]
    """By tokens (or by requests, in the head)."""
    layers: int = 0
    matrix: Matrix | None = None
    """As this device holds it, for products."""


def token_parts(shape: EngineShape, operators: Operators, taken: Assumptions) -> Iterator[Part]:
    """Everything that every token of an iteration meets."""
    model = shape.model
    narrow = "bf16" if shape.precision in ("mxfp4", "fp16") else shape.precision
    for name, layers, matrix in _dense_matrices(shape):
        yield product(operators, name, layers, matrix, "bf16" if name == "router" else narrow)
    if model.experts is not None:
        yield _experts(shape, operators)
    yield Part(
        name="norms, rotary, activation",
        operator="",
        precision="bf16",
        seconds=lambda tokens: small_kernels_s(shape, taken, tokens),
    )
    if shape.tensor_parallel > 1:
        yield _all_reduces(shape, operators)


def head_parts(shape: EngineShape, operators: Operators, taken: Assumptions) -> Iterator[Part]:
    """What every request that gets a token meets: the output head, in bf16, and sampling."""
    model = shape.model
    matrix = Matrix(model.hidden, -(-model.vocabulary // shape.tensor_parallel))
    yield product(operators, "output head", 1, matrix, "bf16")
    bandwidth = shape.device.memory_bandwidth_bytes_per_s * taken.bandwidth_efficiency
    logits_s = model.vocabulary * SAMPLING_BYTES_PER_LOGIT / bandwidth
    yield Part(name="sampling", operator="", precision="fp32", seconds=lambda requests: requests * logits_s)


def product(operators: Operators, name: str, layers: int, matrix: Matrix, precision: str) -> Part:
    """A dense product of each of `layers` layers."""
    return Part(
        name=name,
        operator="gemm",
        precision=precision,
        seconds=lambda rows: layers * operators.gemm_s(rows, matrix.inputs, matrix.outputs, precision),
        layers=layers,
        matrix=matrix,
    )


def weight_bytes(precision: str) -> float:
    """Bytes of one weight of a product in a precision."""
    return BYTES_PER_QUANTISED_WEIGHT.get(precision, UNQUANTISED_BYTES)


def _dense_matrices(shape: EngineShape) -> Iterator[tuple[str, int, Matrix]]:
    """Name, layers and the piece of each matrix that one device multiplies."""
    model, tp = shape.model, shape.tensor_parallel
    for name, matrix in _attention_matrices(shape):
        yield name, model.layers, matrix
    if model.dense_layers:
        yield from _mlp("MLP", model.dense_layers, model.mlp_matrices(model.dense_width), tp)
    if model.experts is not None:
        yield "router", model.expert_layers, Matrix(model.hidden, model.experts.count)
        if model.experts.shared_width:
            shared = model.mlp_matrices(model.experts.shared_width)
            yield from _mlp("shared expert", model.expert_layers, shared, tp)


def _mlp(name: str, layers: int, matrices: tuple[Matrix, ...], tp: int) -> Iterator[tuple[str, int, Matrix]]:
    up, down = matrices
    yield f"{name} up", layers, Matrix(up.inputs, -(-up.outputs // tp))
    yield f"{name} down", layers, Matrix(-(-down.inputs // tp), down.outputs)


def _attention_matrices(shape: EngineShape) -> Iterator[tuple[str, Matrix]]:
    """The last is split by its inputs, the others by their outputs; projections to a latent are not split."""
    attention, tp = shape.model.attention, shape.tensor_parallel
    *first, last = attention.matrices(shape.model.hidden)
    if isinstance(attention, LatentAttention):
        for matrix in first:
            whole = matrix.inputs == shape.model.hidden and attention.query_rank is not None
            whole = whole or matrix.outputs == attention.kv_rank + attention.rotary_dim
            yield (
                f"latent projection to {matrix.outputs}",
                matrix if whole else Matrix(matrix.inputs, matrix.outputs // tp),
            )
    else:
        kv_heads = max(1, -(-attention.kv_heads // tp))
        outputs = (attention.heads // tp + 2 * kv_heads) * attention.head_dim
        yield "QKV projection", Matrix(shape.model.hidden, outputs)
    yield "output projection", Matrix(last.inputs // tp, last.outputs)


def _experts(shape: EngineShape, operators: Operators) -> Part:
    experts = shape.model.experts
    assert experts is not None
    spread = shape.expert_parallel > 1
    group = ExpertGroup(
        hidden=shape.model.hidden,
        width=experts.width,
        active=experts.active,
        experts=experts.count,
        tp=1 if spread else shape.tensor_parallel,
        ep=shape.expert_parallel,
    )
    # The fp8 checkpoints of mixtures of experts scale their weights by blocks.
    precision = {"fp16": "bf16", "fp8": "fp8_block"}.get(shape.precision, shape.precision)
    layers = shape.model.expert_layers
    return Part(
        name="experts",
        operator="experts",
        precision=precision,
        seconds=lambda tokens: layers * operators.experts_s(np.maximum(tokens, 1.0), group, precision),
        layers=layers,
    )


def _all_reduces(shape: EngineShape, operators: Operators) -> Part:
    """Two per layer; experts that are spread over the same devices are summed by the second one too."""
    count, token_bytes = 2 * shape.model.layers, shape.model.hidden * _ACTIVATION_BYTES
    devices = shape.tensor_parallel
    return Part(
        name="all-reduce",
        operator="all_reduce",
        precision=str(devices),
        seconds=lambda tokens: count * operators.collective_s("all_reduce", tokens * token_bytes, devices),
        layers=shape.model.layers,
    )
