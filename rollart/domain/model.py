"""The shape of a decoder-only language model, and the counts that follow from it.

Owns: parameters, bytes of weights and of KV cache, multiplications per token. It knows no device and no time.
Every count is over the whole model; nothing here is sharded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rollart.domain.attention import GroupedAttention, LatentAttention, Matrix
from rollart.domain.errors import InputError

BYTES_PER_QUANTISED_WEIGHT = {
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int4": 0.5 + 2.5 / 128,
    "mxfp4": 0.5 + 1 / 32,
}
"""int4: 128 weights share a 2-byte scale and a 4-bit zero point. mxfp4: 32 share a 1-byte scale."""
UNQUANTISED_BYTES = 2.0
"""Embeddings, output head, router, norms and biases stay in bf16 in every precision."""
KV_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The mixture-of-experts part of a layer."""

    count: int
    active: int
    width: int
    shared_width: int = 0
    """Sum of the widths of the experts that every token visits."""
    shared_gate: bool = False
    expert_bias: bool = False
    router_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's shape. Build one with `rollart.domain.hf_config.model_from_hf_config`."""

    name: str
    hidden: int
    layers: int
    vocabulary: int
    tied_embeddings: bool
    attention: GroupedAttention | LatentAttention
    dense_layers: int
    """Layers with an ordinary MLP; the others have experts."""
    dense_width: int
    gated_mlp: bool = True
    mlp_bias: bool = False
    experts: Experts | None = None
    window_tokens: int | None = None
    windowed_layers: int = 0
    """Layers whose attention sees only the last `window_tokens` tokens."""
    max_context_tokens: int | None = None
    native_precision: str = "bf16"

    @property
    def expert_layers(self) -> int:
        """Layers with a mixture of experts."""
        return self.layers - self.dense_layers

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees the whole context."""
        return self.layers - self.windowed_layers

    def mlp_matrices(self, width: int) -> tuple[Matrix, ...]:
        """The matrices of one MLP or expert of a width; gate and up projections are fused."""
        return Matrix(self.hidden, width * (2 if self.gated_mlp else 1)), Matrix(width, self.hidden)

    @property
    def head(self) -> Matrix:
        """The output projection."""
        return Matrix(self.hidden, self.vocabulary)

    @property
    def expert_parameters(self) -> int:
        """Weights of one routed expert, with its biases."""
        if self.experts is None:
            return 0
        return self._mlp_parameters(self.experts.width, bias=self.experts.expert_bias)

    @property
    def parameters(self) -> int:
        """All weights of the main model (no multi-token-prediction layers)."""
        return self._count(self.experts.count if self.experts else 0)

    @property
    def active_parameters(self) -> int:
        """Weights one token meets, both embedding tables included (as Qwen and DeepSeek count)."""
        return self._count(self.experts.active if self.experts else 0)

    @property
    def embedding_parameters(self) -> int:
        """The input embedding, of which a token reads one row."""
        return self.vocabulary * self.hidden

    @property
    def linear_flops_per_token(self) -> float:
        """Forward floating-point operations of all matrices for one token, output head included."""
        return 2.0 * (sum(matrix.parameters for matrix in self._active_matrices()) + self.head.parameters)

    def attention_flops_per_pair(self, *, decode: bool = False) -> float:
        """Forward operations of one (query, key) pair over all full-attention layers.

        Multiply by `windowed_layers / full_layers` for the windowed ones; see `layer_flops_per_pair`.
        """
        return self.full_layers * self.layer_flops_per_pair(decode=decode)

    def layer_flops_per_pair(self, *, decode: bool = False) -> float:
        """Forward operations of one (query, key) pair in one layer."""
        if decode:
            return float(self.attention.decode_flops_per_pair)
        return float(self.attention.prefill_flops_per_pair)

    def layer_kv_bytes_per_token(self, kv_dtype: str = "bf16") -> float:
        """Bytes cached per token in one layer."""
        if kv_dtype not in KV_BYTES:
            raise InputError(f"KV cache dtype {kv_dtype!r} is not known; one of: {', '.join(KV_BYTES)}")
        return self.attention.kv_entries_per_token * KV_BYTES[kv_dtype]

    def kv_bytes_per_token(self, kv_dtype: str = "bf16") -> float:
        """Bytes each further token of a long context adds: the full-attention layers."""
        return self.full_layers * self.layer_kv_bytes_per_token(kv_dtype)

    def kv_bytes(self, context_tokens: int, kv_dtype: str = "bf16") -> float:
        """Bytes cached for one sequence of a length; windowed layers keep at most their window."""
        windowed = min(context_tokens, self.window_tokens or 0) * self.windowed_layers
        return (context_tokens * self.full_layers + windowed) * self.layer_kv_bytes_per_token(kv_dtype)

    def weight_bytes(self, precision: str = "bf16") -> float:
        """Bytes of all weights; mxfp4 narrows the routed experts only, as in the gpt-oss checkpoints."""
        if precision not in BYTES_PER_QUANTISED_WEIGHT:
            known = ", ".join(BYTES_PER_QUANTISED_WEIGHT)
            raise InputError(f"precision {precision!r} is not known; one of: {known}")
        narrowed = self._quantised_parameters(experts_only=precision == "mxfp4")
        narrow_bytes = BYTES_PER_QUANTISED_WEIGHT[precision]
        return narrowed * narrow_bytes + (self.parameters - narrowed) * UNQUANTISED_BYTES

    def _quantised_parameters(self, *, experts_only: bool) -> int:
        routed = 0
        if self.experts is not None:
            matrices = self.mlp_matrices(self.experts.width)
            routed = self.expert_layers * self.experts.count * sum(matrix.parameters for matrix in matrices)
        if experts_only:
            return routed
        return routed + sum(matrix.parameters for matrix in self._shared_matrices())

    def _shared_matrices(self) -> Iterator[Matrix]:
        """Matrices that every token meets, without router and head."""
        for _ in range(self.layers):
            yield from self.attention.matrices(self.hidden)
        for _ in range(self.dense_layers):
            yield from self.mlp_matrices(self.dense_width)
        if self.experts is not None and self.experts.shared_width:
            for _ in range(self.expert_layers):
                yield from self.mlp_matrices(self.experts.shared_width)

    def _active_matrices(self) -> Iterator[Matrix]:
        yield from self._shared_matrices()
        if self.experts is not None:
            for _ in range(self.expert_layers):
                yield Matrix(self.hidden, self.experts.count)
                for _ in range(self.experts.active):
                    yield from self.mlp_matrices(self.experts.width)

    def _mlp_parameters(self, width: int, *, bias: bool) -> int:
        matrices = self.mlp_matrices(width)
        return sum(matrix.parameters + (matrix.outputs if bias else 0) for matrix in matrices)

    def _count(self, experts_per_layer: int) -> int:
        attention = sum(matrix.parameters for matrix in self.attention.matrices(self.hidden))
        every_layer = attention + self.attention.small_parameters(self.hidden) + 2 * self.hidden
        count = self.layers * every_layer + self.hidden
        count += self.dense_layers * self._mlp_parameters(self.dense_width, bias=self.mlp_bias)
        count += self.expert_layers * (self._router_and_shared() + experts_per_layer * self.expert_parameters)
        return count + self.embedding_parameters * (1 if self.tied_embeddings else 2)

    def _router_and_shared(self) -> int:
        if self.experts is None:
            return 0
        router = self.experts.count * (self.hidden + (1 if self.experts.router_bias else 0))
        gate = self.hidden if self.experts.shared_gate else 0
        if not self.experts.shared_width:
            return router + gate
        return router + gate + self._mlp_parameters(self.experts.shared_width, bias=False)
