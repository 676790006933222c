"""Counters of an engine, kept while vLLM reports its iterations."""

import time
from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase


class Meter(StatLoggerBase):
    """Cumulative counters since the process began.

    vLLM does not tell how long an iteration took: busy time is the time with open requests on an engine that is not
    suspended, which its process counts by `work`.
    """

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        del engine_index
        self._capacity_blocks = 0
        self._config = vllm_config
        self._last_s = time.perf_counter()
        self._busy_since_s: float | None = None
        self.busy_s = 0.0
        self.iterations = 0
        self.prefill_tokens = 0
        self.decode_tokens = 0
        self.cached_tokens = 0
        self.preemptions = 0
        self.kv_block_s = 0.0
        self.running = 0
        self.waiting = 0

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Add an iteration."""
        del mm_cache_stats, engine_idx
        now = time.perf_counter()
        passed_s, self._last_s = now - self._last_s, now
        if scheduler_stats is not None:
            self.running = scheduler_stats.num_running_reqs
            self.waiting = scheduler_stats.num_waiting_reqs
            self.kv_block_s += scheduler_stats.kv_cache_usage * self.capacity_blocks * passed_s
        if iteration_stats is not None:
            self.iterations += 1
            prompt = iteration_stats.prompt_token_stats
            self.prefill_tokens += prompt.computed
            self.cached_tokens += prompt.local_cache_hit
            self.decode_tokens += iteration_stats.num_generation_tokens
            self.preemptions += iteration_stats.num_preempted_reqs

    def work(self, has_work: bool) -> None:
        """From now on the engine has something to do, or has nothing."""
        now = time.perf_counter()
        if self._busy_since_s is not None:
            self.busy_s += now - self._busy_since_s
        self._busy_since_s = now if has_work else None

    def log_engine_initialized(self) -> None:
        """Nothing is logged."""

    @property
    def capacity_blocks(self) -> int:
        """Blocks of the KV cache; 0 until vLLM knows."""
        return self._config.cache_config.num_gpu_blocks or 0

    def reading(self) -> tuple[float, int, int, int, int, int, float, int, int, int]:
        """All counters, in the order of `rollart.exec.real.engines.link.Reading`."""
        return (
            self.busy_s,
            self.iterations,
            self.prefill_tokens,
            self.decode_tokens,
            self.cached_tokens,
            self.preemptions,
            self.kv_block_s,
            self.capacity_blocks,
            self.running,
            self.waiting,
        )
