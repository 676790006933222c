"""An engine's iteration time from data sheet and model config alone: rung one of the ladder of trust.

    iteration = products(tokens) + head(requests) + KV read by decode + attention of prefill chunks

Products, head and the fixed part of attention are tabulated on first use, so that a simulated turn costs
two look-ups. Windowed layers read a request's context up to their window; a batch is treated as if its
context were spread evenly over its requests.
"""

import math
from collections.abc import Sequence

from rollart.costs.assumptions import Assumptions, assumptions_for
from rollart.costs.engine_shape import EngineShape, kv_capacity_tokens
from rollart.costs.interface import LinearPiece
from rollart.costs.products import Products
from rollart.domain.attention import LatentAttention

_ATTENTION_KERNELS = 2
"""Attention and the merge of its splits."""


class RooflineEngine:
    """Costs of one engine; see `rollart.costs.interface.EngineCosts`.

    Raises CapacityError where the model does not fit.
    """

    def __init__(self, shape: EngineShape, assumptions: Assumptions | None = None) -> None:
        taken = assumptions or assumptions_for(shape.device)
        self.shape = shape
        self.kv_capacity_tokens = kv_capacity_tokens(shape, taken)
        self.kv_bytes_per_token = shape.model.kv_bytes_per_token(shape.kv_dtype)
        self.weight_bytes = shape.weight_bytes
        self._products = Products(shape, taken)
        self._linear_s: dict[int, float] = {}
        self._head_s: dict[int, float] = {}
        self._pieces: dict[int, tuple[LinearPiece, LinearPiece]] = {}
        self._set_attention(shape, taken)

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        """Iteration of decode requests alone; a windowed model bends where its windows are full."""
        pieces = self._pieces.get(batch)
        if pieces is None:
            pieces = self._pieces[batch] = self._decode_pieces(batch)
        return pieces[0] if context_tokens < pieces[0].limit_tokens else pieces[1]

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Iteration of decode requests and prefill chunks; equals `decode` where there are no chunks."""
        tokens = batch
        attention_s = self._attention_floor_s
        for new, cached in chunks:
            tokens += new
            pairs = new * (cached + 0.5 * (new + 1))
            compute_s = pairs * self._full_pair_s + cached * self._expand_s
            if self._window_tokens:
                compute_s += windowed_pairs(new, cached, self._window_tokens) * self._windowed_pair_s
            read_s = (new + cached) * self._full_read_s
            attention_s += compute_s if compute_s > read_s else read_s
        if batch:
            attention_s += context_tokens * self._decode_full_s
            if self._window_tokens:
                attention_s += min(context_tokens, batch * self._window_tokens) * self._decode_windowed_s
        requests = batch + len(chunks)
        linear_s = self._linear_s.get(tokens)
        if linear_s is None:
            linear_s = self._linear_s[tokens] = self._products.linear_s(tokens)
        head_s = self._head_s.get(requests)
        if head_s is None:
            head_s = self._head_s[requests] = self._products.head_s(requests)
        return linear_s + head_s + attention_s

    def _decode_pieces(self, batch: int) -> tuple[LinearPiece, LinearPiece]:
        base_s = self._products.linear_s(batch) + self._products.head_s(batch) + self._attention_floor_s
        bend = float(batch * self._window_tokens)
        beyond = LinearPiece(base_s + bend * self._decode_windowed_s, self._decode_full_s, math.inf)
        return LinearPiece(base_s, self._decode_full_s + self._decode_windowed_s, bend), beyond

    def _set_attention(self, shape: EngineShape, taken: Assumptions) -> None:
        model, device = shape.model, shape.device
        self._window_tokens = model.window_tokens or 0
        self._attention_floor_s = model.layers * _ATTENTION_KERNELS * taken.kernel_floor_s
        bandwidth = device.memory_bandwidth_bytes_per_s * taken.bandwidth_efficiency
        attention_rate = device.peak_flops_per_s("bf16") * taken.attention_efficiency * shape.tensor_parallel
        read_s = model.layer_kv_bytes_per_token(shape.kv_dtype) * shape.kv_share / bandwidth
        pair_s = model.layer_flops_per_pair() / attention_rate
        decode_s = max(read_s, model.layer_flops_per_pair(decode=True) / attention_rate)
        self._full_read_s = model.full_layers * read_s
        self._full_pair_s = model.full_layers * pair_s
        self._windowed_pair_s = model.windowed_layers * pair_s
        self._decode_full_s = model.full_layers * decode_s
        self._decode_windowed_s = model.windowed_layers * decode_s
        self._expand_s = 0.0
        if isinstance(model.attention, LatentAttention):
            expanded = 2 * model.attention.expansion.parameters * model.layers / shape.tensor_parallel
            self._expand_s = expanded / (device.peak_flops_per_s(shape.precision) * taken.gemm_efficiency)


def windowed_pairs(new: int, cached: int, window: int) -> float:
    """(query, key) pairs of `new` tokens over `cached` ones where each sees at most `window` keys."""
    growing = min(new, max(0, window - cached))
    return growing * (cached + 0.5 * (growing + 1)) + (new - growing) * window
