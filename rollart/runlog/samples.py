"""Samples: cumulative counters that a driver writes at the end of every step and of the run.

A counter starts at 0 with the run and never falls: an engine's goes on through its restarts.
"""

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """Readings of one worker's counters; their time is given beside them."""


class EngineSample(Sample, frozen=True, kw_only=True, gc=False, tag=True):
    """Counters of one engine."""

    engine: int
    busy_s: float
    """Seconds in iterations."""
    iterations: int
    prefill_tokens: int
    """Prompt tokens computed, those computed again among them; cached ones are not."""
    decode_tokens: int
    cached_tokens: int
    recomputed_tokens: int
    """Tokens computed again after a preemption, a weight update or a lost cache."""
    recompute_preempted_tokens: int
    """The part of `recomputed_tokens` that preemptions caused."""
    preemptions: int
    kv_block_s: float
    """Integral of the used KV blocks over time."""
    kv_capacity_blocks: int
    running: int
    """Requests in the batch now."""
    waiting: int
    """Requests in the queue now."""


class TrainerSample(Sample, frozen=True, kw_only=True, gc=False, tag=True):
    """Counters of the trainer."""

    busy_s: float


class LinkSample(Sample, frozen=True, kw_only=True, gc=False, tag=True):
    """Counters of one network link."""

    link: str
    bytes: int
    busy_s: float


class EnvironmentSample(Sample, frozen=True, kw_only=True, gc=False, tag=True):
    """Counters of the environment hosts."""

    busy_s: float
    """Core seconds."""
    slots_s: float
    """Integral of the used slots over time."""


class RewardSample(Sample, frozen=True, kw_only=True, gc=False, tag=True):
    """Counters of the reward service."""

    busy_s: float
    """Seconds of work, summed over instances."""
    billed_s: float
    cold_starts: int


SAMPLES: tuple[type[Sample], ...] = (
    EngineSample,
    TrainerSample,
    LinkSample,
    EnvironmentSample,
    RewardSample,
)
"""Every sample."""
