"""Iterations that mix prompts and decoding on devices whose attention kernel then reads the KV cache more than once.

FlashAttention 2, which vLLM uses where there is no newer kernel, packs the query heads that share a KV head into one
read, and splits long contexts, only if every request has one query. In a mixed iteration each query head reads the KV
for itself, and the cache of the device serves a part of it. FlashAttention 3 (Hopper) packs in every iteration, and
kernels for Blackwell's data-centre devices keep the two kinds apart.
"""

from collections.abc import Sequence

from rollart.costs.interface import EngineCosts
from rollart.domain.device import Device
from rollart.domain.model import Model

_KINDS = ("A100", "A800", "L40S", "RTX PRO 6000")
"""Devices without such kernels."""
READ_AGAIN = 2.0
"""Time of decode attention in a mixed iteration over that in a pure one: a round guess between 1 (the cache serves all
repeats) and the query heads of a KV head, 4 to 8 (it serves none). Not optimised on anything."""


def reads_again(model: Model, device: Device) -> bool:
    """Whether mixed iterations of the model read KV more than once on the device."""
    attention = model.attention
    return device.name in _KINDS and attention.kv_heads < attention.heads


class MixedAttention:
    """The costs of an engine, with dearer mixed iterations; see `rollart.costs.interface.EngineCosts`."""

    def __init__(self, costs: EngineCosts) -> None:
        self.kv_capacity_tokens = costs.kv_capacity_tokens
        self.kv_bytes_per_token = costs.kv_bytes_per_token
        self.weight_bytes = costs.weight_bytes
        self.operators = getattr(costs, "operators", None)
        self.decode = costs.decode
        self._mixed_s = costs.mixed_s

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Iteration of decode requests and prefill chunks."""
        seconds = self._mixed_s(batch, context_tokens, chunks)
        if batch and chunks:
            # What grows with the context is attention.
            seconds += (READ_AGAIN - 1.0) * self.decode(batch, context_tokens).per_token_s * context_tokens
        return seconds
