"""What a solved planning problem answers: candidates with their predictions, and how good they are proven to be."""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.domain.plan import Plan
from rollart.domain.planning import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """What a plan does with one pool."""

    training_devices: int
    rollout_devices: int
    idle_devices: int
    busy: float
    """Part of its rollout devices' time that the model keeps busy, from 0 to 1."""
    bottleneck: str
    """In words, what keeps the pool from doing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the model expects of a plan; seconds and money of one step in steady state."""

    step_s: float
    cost_per_step: float
    rollout_s: float
    """Of one batch, barriers included."""
    training_s: float
    update_s: float
    """Weights from the end of training until they are on the engines, hidden or not."""
    bottleneck: str
    """The stage that the step waits for."""
    pools: Mapping[str, PoolUse]
    shares: Mapping[str, Mapping[str, float]]
    """Task -> engine group -> part of the task's trajectories that it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan and what the model expects of it."""

    plan: Plan
    predicted: Prediction
    value: float
    """Predicted objective, penalties included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveReport:
    """The best plans of the model, best first and different in substance, with proven limits."""

    status: str
    """`optimal` (of the model, to the gap), or `time limit`: the best plans found until then."""
    objective: Objective
    candidates: tuple[Candidate, ...]
    bound: float
    """No plan of the model has a better predicted objective."""
    floor: float
    """No simulation of any plan has a better objective."""
    wall_s: float
    seed: int
    binding: tuple[str, ...]
    """In words, the constraints that keep the best plan from being better."""

    @property
    def best(self) -> Candidate:
        """The candidate with the best predicted objective."""
        return self.candidates[0]

    @property
    def gap(self) -> float:
        """|predicted - bound| / |predicted| of the best candidate."""
        return abs(self.best.value - self.bound) / abs(self.best.value)
