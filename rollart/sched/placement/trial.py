"""What the planner asks of a simulator: a trial of a plan under one seed, and the outcome that comes back.

The planner is given an `Evaluate` and never learns who simulates. Trials with the same seed meet the same luck, so the
outcomes of two plans are compared seed by seed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rollart.domain.job import Job
from rollart.domain.plan import Plan
from rollart.domain.planning import Objective
from rollart.sched.placement.rent import rented
from rollart.workload.reshaped import AS_IT_IS, Reshape

COUNTED_TRAJECTORIES = 256
"""With fewer, the luck of a few long trajectories is larger than what good plans differ by."""
MOST_STEPS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One simulation: a job (with its plan, seed and steps), on a workload that may be reshaped."""

    job: Job
    reshape: Reshape = AS_IT_IS


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a simulation gave, step by step behind the warm-up; or why there is nothing."""

    step_s: tuple[float, ...]
    cost: tuple[float, ...]
    """Money of each step: devices that the plan takes, environment cores, reward functions."""
    trajectories: int
    """Trained on, over all these steps."""
    failure: str | None = None
    """Why the plan could not be simulated to its end."""

    @property
    def mean_step_s(self) -> float:
        """Mean time of a step; infinite for a failure."""
        return math.inf if self.failure else math.fsum(self.step_s) / len(self.step_s)

    @property
    def mean_cost(self) -> float:
        """Mean cost of a step; infinite for a failure."""
        return math.inf if self.failure else math.fsum(self.cost) / len(self.cost)

    def value(self, objective: Objective) -> float:
        """The objective; the worst value there is for a failure."""
        if objective is Objective.STEP_TIME:
            return self.mean_step_s
        if objective is Objective.COST:
            return self.mean_cost
        return 0.0 if self.failure else self.trajectories / math.fsum(self.cost)

    def values(self, objective: Objective) -> tuple[float, ...]:
        """The objective step by step; nothing for a failure."""
        if objective is Objective.STEP_TIME:
            return self.step_s
        if objective is Objective.COST:
            return self.cost
        return tuple(self.trajectories / len(self.cost) / cost for cost in self.cost)


Evaluate = Callable[[Sequence[Trial]], Sequence[Outcome]]
"""Simulates trials, in any order and number at once; outcomes come in the order of the trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """How plans of one job are tried: how many steps, on which workload."""

    job: Job
    warmup_steps: int = 2
    """At least; the first batches of an asynchronous run start together, so that its second step is a short one."""
    counted_steps: int = 4
    """Steps behind the warm-up, at least."""
    counted_trajectories: int = COUNTED_TRAJECTORIES
    """Trajectories that are trained in them, at least: a small batch takes more steps, up to `MOST_STEPS`."""
    reshape: Reshape = AS_IT_IS

    def of(self, plan: Plan, seed: int) -> Trial:
        """The trial of a plan, on the devices that it takes and pays for."""
        warmup_steps = max(self.job.warmup_steps, self.warmup_steps)
        steps = warmup_steps + self._counted(self.job.training.batch_size)
        return Trial(
            job=replace(rented(self.job, plan), seed=seed, warmup_steps=warmup_steps, steps=steps),
            reshape=self.reshape,
        )

    def _counted(self, batch_size: int) -> int:
        """Steps that count; an even number where trajectories decide, since steps come in pairs for a while."""
        pairs = math.ceil(self.counted_trajectories / batch_size / 2)
        return max(self.counted_steps, min(MOST_STEPS, 2 * pairs))
