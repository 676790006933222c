"""What an engine's process is told when it starts."""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.exec.real.engines.connectors import KvTransfer
from rollart.exec.real.weights.carrier import Carrier


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the turns of one task are sampled."""

    temperature: float
    allowed: tuple[int, ...]
    """Ids of the only tokens that may be sampled; none: all."""
    stop: tuple[int, ...]
    """Ids of tokens that end a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Model, sizes and sampling of an engine."""

    folder: str
    """The model in the Hugging Face form."""
    host_folder: str
    """Where the engine's host keeps weights that were pulled, in memory."""
    carrier: Carrier
    """How they get there."""
    broadcast: bool = False
    """Whether the trainer also sends weights straight to the devices, by NCCL."""
    dtype: str
    context_limit: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    prefix_caching: bool
    tensor_parallel: int
    gpu_memory_utilization: float
    cores: frozenset[int] | None
    """CPU cores that the engine's process is bound to; None: any, or those that vLLM's own workers are given."""
    kv_cache_bytes: int | None
    """Size of the KV cache; None: what the device has left."""
    seed: int
    sampling: Mapping[str, Sampling]
    """By task."""
    time_shared: bool = False
    """The trainer has its device in turns with it."""
    kv_transfer: KvTransfer | None = None
    """Where prefill and decode are on different engines."""
