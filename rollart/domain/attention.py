"""Attention of one layer: its matrices, what it caches per token, what one (query, key) pair costs."""

from dataclasses import dataclass
from typing import NamedTuple


class Matrix(NamedTuple):
    """One weight matrix: a token multiplies `inputs` numbers into `outputs`."""

    inputs: int
    outputs: int

    @property
    def parameters(self) -> int:
        """Number of weights, which is also multiply-adds per token."""
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedAttention:
    """Multi-head, multi-query or grouped-query attention."""

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Fused query-key-value projection and output projection."""
        fused = (self.heads + 2 * self.kv_heads) * self.head_dim
        return Matrix(hidden, fused), Matrix(self.heads * self.head_dim, hidden)

    def small_parameters(self, hidden: int) -> int:
        """Biases, norms and sinks of one layer."""
        count = 2 * self.head_dim if self.qk_norm else 0
        count += (self.heads + 2 * self.kv_heads) * self.head_dim if self.qkv_bias else 0
        return count + (hidden if self.output_bias else 0) + (self.heads if self.sinks else 0)

    @property
    def kv_entries_per_token(self) -> int:
        """Numbers cached per token and layer."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def prefill_flops_per_pair(self) -> int:
        """Score and weighted sum of one (query, key) pair over all heads of one layer."""
        return 4 * self.heads * self.head_dim

    @property
    def decode_flops_per_pair(self) -> int:
        """As in prefill."""
        return self.prefill_flops_per_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): the cache holds one compressed latent."""

    heads: int
    query_rank: int | None
    kv_rank: int
    plain_dim: int
    rotary_dim: int
    value_dim: int

    @property
    def kv_heads(self) -> int:
        """One: tensor parallelism cannot split the latent, every device holds all of it."""
        return 1

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Down- and up-projections; decode absorbs the up-projections, which costs the same per token."""
        query_outputs = self.heads * (self.plain_dim + self.rotary_dim)
        if self.query_rank is None:
            query: tuple[Matrix, ...] = (Matrix(hidden, query_outputs),)
        else:
            query = (Matrix(hidden, self.query_rank), Matrix(self.query_rank, query_outputs))
        return (
            *query,
            Matrix(hidden, self.kv_rank + self.rotary_dim),
            self.expansion,
            Matrix(self.heads * self.value_dim, hidden),
        )

    @property
    def expansion(self) -> Matrix:
        """From the latent to keys and values per head; prefill repeats it for every cached token."""
        return Matrix(self.kv_rank, self.heads * (self.plain_dim + self.value_dim))

    def small_parameters(self, hidden: int) -> int:  # noqa: ARG002 - same signature as GroupedAttention
        """The norms of the two latents."""
        return (self.query_rank or 0) + self.kv_rank

    @property
    def kv_entries_per_token(self) -> int:
        """The latent and the shared rotary key."""
        return self.kv_rank + self.rotary_dim

    @property
    def prefill_flops_per_pair(self) -> int:
        """Keys and values are expanded per head."""
        return 2 * self.heads * (self.plain_dim + self.rotary_dim + self.value_dim)

    @property
    def decode_flops_per_pair(self) -> int:
        """Queries move into the latent space instead: each pair costs more, each byte read is used more."""
        return 2 * self.heads * (2 * self.kv_rank + self.rotary_dim)
