"""Brings the totals of trajectories to the mean that they have in the trace.

Quantiles, correlations and changes along a trajectory are fitted one by one, and how they act together is only known
once trajectories are drawn. So a fitted task is drawn from, and each figure that is not drawn independently gets a
factor, in all turns, that makes the mean total of a trajectory right.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rollart.workload.fit.observed import Observed
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.trajectory import TrajectorySpec

_DRAWN = 4000
_BOUNDS = (0.8, 1.25)
"""A factor outside tells of a wrong model, which a level does not mend; it is cut to these."""
_WORTH = 0.005
"""A smaller correction is left out."""
_TOTALS: dict[str, Callable[[TrajectorySpec], float]] = {
    "output_tokens": lambda spec: sum(spec.output_tokens),
    "observation_tokens": lambda spec: sum(spec.new_tokens[1:]),
    "env_s": lambda spec: sum(spec.env_s),
}


def level_factors(task: dict[str, Any], observed: Observed) -> dict[str, float]:
    """{figure: factor} for the figures of a task, given as keys of a profile, whose totals are off."""
    figures = [name for name in _TOTALS if _depends(task[name]) and len(observed.draws(name))]
    if not figures:
        return {}
    alone = {name: keys for name, keys in task.items() if name != "compaction"}
    document = {"schema": 1, "name": "fitted", "tasks": {"fitted": alone}}
    workload = ProfileWorkload(profile_from_mapping(document, "the fitted profile"), seed=0)
    specs = [workload.trajectory("fitted", prompt, 0, 0) for prompt in range(_DRAWN)]
    found = {name: _factor(name, specs, observed) for name in figures}
    return {name: factor for name, factor in found.items() if abs(factor - 1.0) > _WORTH}


def _depends(keys: dict[str, Any]) -> bool:
    return "by_turn" in keys or "turns_correlation" in keys


def _factor(name: str, specs: list[TrajectorySpec], observed: Observed) -> float:
    drawn = float(np.mean([_TOTALS[name](spec) for spec in specs]))
    counted = observed.draws("turns").trajectory
    draws = observed.draws(name)
    own = np.bincount(draws.trajectory, weights=draws.values, minlength=observed.trajectories)
    return float(np.clip(own[counted].mean() / drawn, *_BOUNDS)) if drawn > 0.0 else 1.0
