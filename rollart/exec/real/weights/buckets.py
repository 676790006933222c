"""Weights cut into buckets of about equal size, so that a transfer can overlap with what follows it."""

from collections.abc import Iterable, Iterator

import torch

BUCKET_BYTES = 256 * 2**20
"""Large enough that the cost of a message does not count, small enough for a few of them to be in memory at once."""


def buckets(
    tensors: Iterable[tuple[str, torch.Tensor]], bucket_bytes: int = BUCKET_BYTES
) -> Iterator[dict[str, torch.Tensor]]:
    """Tensors in their order, at most `bucket_bytes` together (a larger one alone)."""
    bucket: dict[str, torch.Tensor] = {}
    size = 0
    for name, tensor in tensors:
        if bucket and size + tensor.nbytes > bucket_bytes:
            yield bucket
            bucket, size = {}, 0
        bucket[name] = tensor
        size += tensor.nbytes
    if bucket:
        yield bucket
