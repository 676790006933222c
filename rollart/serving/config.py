"""What one engine is set to: how it schedules, the scheduler's limits, and the size of its KV cache."""

from dataclasses import dataclass

from rollart.domain.errors import InputError

SCHEDULERS = ("vllm", "sglang")
"""Whose rules an engine can follow."""


def known_scheduler(name: str) -> str:
    """The name; InputError lists the schedulers where it is none of them."""
    if name not in SCHEDULERS:
        raise InputError(f"engine scheduler {name!r} is not known; one of: {', '.join(SCHEDULERS)}")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Limits of one engine, named as in vLLM.

    `scheduler` is one of `SCHEDULERS`: "vllm" mixes prompt chunks into iterations that decode; "sglang" lets
    prompts go first, in iterations of their own, and counts KV by the token (`block_size` 1). `prefix_tokens`
    above 0 makes the prefix cache go by the names in `Request.prefix`, each of so many tokens.
    `scheduling_lag` is 1 under asynchronous scheduling: an iteration is composed one iteration before it
    starts, so arrivals join and finished slots are free one iteration later.  `keep_kv_on_update` keeps
    both running KV and the prefix cache, made by the old weights, through a weight update.
    Raises InputError when the limits contradict each other.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_blocks: int
    block_size: int = 16
    prefix_caching: bool = True
    scheduling_lag: int = 0
    keep_kv_on_update: bool = False
    scheduler: str = "vllm"
    prefix_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "kv_blocks", "block_size"):
            if getattr(self, name) < 1:
                raise InputError(f"engine {name} is {getattr(self, name)}; it must be at least 1")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise InputError(
                f"engine max_num_batched_tokens is {self.max_num_batched_tokens}, below max_num_seqs"
                f" {self.max_num_seqs}; every running request needs one token of the budget"
            )
        if self.scheduling_lag not in (0, 1):
            raise InputError(
                f"engine scheduling_lag is {self.scheduling_lag}; 0 is synchronous, 1 asynchronous scheduling"
            )

        self._check_scheduler()
        if self.prefix_tokens < 0 or self.prefix_tokens % self.block_size:
            raise InputError(
                f"engine prefix_tokens is {self.prefix_tokens}; it must be 0 or a multiple of block_size"
                f" {self.block_size}"
            )

    def _check_scheduler(self) -> None:
        if known_scheduler(self.scheduler) == "sglang" and self.block_size != 1:
            raise InputError(
                f"engine block_size is {self.block_size}; the sglang scheduler counts KV by the token: it must be 1"
            )

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose KV fits the engine."""
        return self.kv_blocks * self.block_size
