"""How a preset composes a step out of rollout R, training T and weight update W.

    synchronous        s = R + T + W
    one batch ahead    s = max(R, T) + W          (batch_first, look-ahead 0)
    asynchronous       s = max(R + r, T + t)      (look-ahead 1 or more)

where of the update r is exposed to the rollout and t to the trainer: all of it where it blocks; where it is prefetched,
r is the load alone and t is the fetch, unless the trainer does not wait for it.
"""

from dataclasses import dataclass

from rollart.domain.plan import PolicySpec
from rollart.sched.parts import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The shape of a step under a policy."""

    barrier: bool
    """The rollout of a batch ends before the next one begins, so its longest trajectory counts."""
    sums: bool
    """Rollout and training take turns."""
    started_per_trained: float
    """Trajectories started for each that is trained on (redundancy)."""
    batches_ahead: int
    """Batches under way beyond the one that is due."""
    prefetch: bool
    waits_for_fetch: bool

    @classmethod
    def of(cls, policy: PolicySpec, group_size: int) -> "Composition":
        """The composition of a policy, for groups of a size."""
        parts = build(policy.parts)
        ahead = parts.admission.lookahead
        update_first = parts.sync.order == "update_first"
        return cls(
            barrier=ahead == 0,
            sums=ahead == 0 and update_first,
            started_per_trained=parts.group.members_to_start(group_size) / group_size,
            batches_ahead=ahead,
            prefetch=parts.sync.prefetch,
            waits_for_fetch=parts.sync.wait_for_fetch or update_first,
        )

    def step_s(self, rollout_s: float, training_s: float, fetch_s: float, load_s: float) -> float:
        """Duration of a step; `fetch_s` is gather, push and pull, `load_s` what follows."""
        update_s = fetch_s + load_s
        if self.sums:
            return rollout_s + training_s + update_s
        if self.barrier:
            return max(rollout_s, training_s) + update_s
        exposed_s = load_s if self.prefetch else update_s
        behind_s = update_s if self.waits_for_fetch else load_s
        return max(rollout_s + exposed_s, training_s + behind_s)
