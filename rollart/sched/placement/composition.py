"""How a policy composes a step out of rollout R, training T and weight update W = fetch + load.

    synchronous        s = R + T + W
    one batch ahead    s = max(R, T) + W              (batch_first, look-ahead 0)
    opened late        s = T + W + max(0, R - T) / 2  (update_first, look-ahead 1 over the installed version)
    asynchronous       s = max(R + r, T + t)          (more)

where of the update r is exposed to the rollout and t to the trainer: all of it where it blocks; where it is prefetched,
r is the load alone and t is the whole, unless the trainer does not wait for the fetch.

Opened late: a batch is opened when a version is installed and taken after the next one is, tau later than the trainer
is free. It then had T + 2 tau of time, and a step has T + W + tau.
"""

from dataclasses import dataclass

from rollart.domain.plan import PolicySpec
from rollart.sched.parts import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The shape of a step under a policy."""

    barrier: bool
    """All of a batch must end before it is taken: engines drain, and its longest trajectory counts."""
    sums: bool
    """Rollout and training take turns."""
    late: bool
    """Batches are opened when a version is installed, not when one is taken."""
    lockstep: bool
    """All of a batch finish a generation, or a step of their environments, before any goes on."""
    redundant_members: int
    ahead: float
    """Batches open beyond the one that is due when it is taken, redundant groups included."""
    oldest: int | None
    """Versions that a trajectory may be old; None: any."""
    prefetch: bool
    waits_for_fetch: bool

    @classmethod
    def of(cls, policy: PolicySpec) -> "Composition":
        """The composition of a policy."""
        parts = build(policy.parts)
        admission, update_first = policy.parts["admission"], parts.sync.order == "update_first"
        lookahead = parts.admission.lookahead
        late = update_first and lookahead > 0 and admission.get("base") == "installed"
        ahead = lookahead - 1 if late else lookahead
        return cls(
            barrier=ahead == 0,
            sums=lookahead == 0 and update_first,
            late=late,
            lockstep=parts.interaction.lockstep,
            redundant_members=parts.group.members_to_start(0),
            ahead=ahead + float(admission.get("redundant_groups", 0.0)),
            oldest=parts.staleness.bound,
            prefetch=parts.sync.prefetch,
            waits_for_fetch=parts.sync.wait_for_fetch or update_first,
        )

    @property
    def under_way(self) -> float:
        """Batches that may be open at once."""
        return 1.0 + self.ahead + (1.0 if self.late else 0.0)

    def step_s(self, rollout_s: float, training_s: float, fetch_s: float, load_s: float) -> float:
        """Duration of a step; `fetch_s` is gather, push and pull, `load_s` what follows."""
        if self.sums:
            return rollout_s + training_s + fetch_s + load_s
        if self.barrier and self.late:
            return training_s + fetch_s + load_s + max(0.0, rollout_s - training_s) / 2
        exposed_s, behind_s = self._exposed_s(fetch_s, load_s), self._behind_s(fetch_s, load_s)
        return max(rollout_s + exposed_s, training_s + behind_s)

    def window_s(self, step_s: float, training_s: float, fetch_s: float, load_s: float) -> float:
        """What a step of this duration leaves to its rollout; 0 or less where training alone takes longer."""
        if self.sums:
            return step_s - training_s - fetch_s - load_s
        if training_s + self._behind_s(fetch_s, load_s) > step_s * (1 + 1e-9):
            return 0.0
        if self.barrier and self.late:
            return 2 * (step_s - fetch_s - load_s) - training_s
        return step_s - self._exposed_s(fetch_s, load_s)

    def _exposed_s(self, fetch_s: float, load_s: float) -> float:
        """What of the update stops the rollout."""
        return load_s if self.prefetch and not self.barrier else fetch_s + load_s

    def _behind_s(self, fetch_s: float, load_s: float) -> float:
        """What of the update follows training before the next step can begin."""
        return fetch_s + load_s if self.waits_for_fetch or self.barrier else load_s
