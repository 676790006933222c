"""What an engine has done so far, as running sums."""

from dataclasses import dataclass

from rollart.serving.kvcache import KVCache


@dataclass(slots=True, kw_only=True)
class Counters:
    """Running sums that the engine adds to at every wake-up.

    `prefill_tokens` were computed in prompt chunks, losses among them; `cached_tokens` were found at first
    admissions.  The integral of used blocks over time takes them as linear between two wake-ups.
    """

    busy_s: float = 0.0
    """Of busy periods that are over."""
    busy_since_s: float | None = None
    """Start of the busy period; None at rest."""
    iterations: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    cached_tokens: int = 0
    lost_history_tokens: int = 0
    preempted_tokens: int = 0
    updated_tokens: int = 0
    preemptions: int = 0
    completions: int = 0
    kv_block_s: float = 0.0
    kv_blocks: int = 0
    kv_since_s: float = 0.0

    def busy_until(self, now: float) -> float:
        """Seconds with an iteration under way, the present busy period included."""
        return self.busy_s if self.busy_since_s is None else self.busy_s + (now - self.busy_since_s)

    def rest(self, now: float) -> None:
        """No iteration is under way any more."""
        self.busy_s = self.busy_until(now)
        self.busy_since_s = None

    def observe_kv(self, kv: KVCache, now: float) -> None:
        """Integrate the occupancy from the last observation up to `now`."""
        used = kv.capacity - kv.free - kv.idle
        if now > self.kv_since_s:
            self.kv_block_s += 0.5 * (self.kv_blocks + used) * (now - self.kv_since_s)
            self.kv_since_s = now
        self.kv_blocks = used


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Counters at one moment; the difference of two is what happened in between.

    `kv_block_s / (interval * kv_blocks)` is the mean KV occupancy, `busy_s / interval` the utilisation.
    The three kinds of recomputed tokens are those of `Loss`.
    """

    time_s: float
    busy_s: float
    iterations: int
    prefill_tokens: int
    decode_tokens: int
    cached_tokens: int
    lost_history_tokens: int
    preempted_tokens: int
    updated_tokens: int
    preemptions: int
    completions: int
    kv_block_s: float
    kv_used_blocks: int
    kv_idle_blocks: int
    running: int
    waiting: int
