"""Brings the totals of trajectories to the mean that they have in the trace.

Quantiles, correlations and changes along a trajectory are fitted one by one, and how they act together is only known
once trajectories are drawn. So a fitted task is drawn from, and each figure that is not drawn independently gets a
factor, in all turns, that makes the mean total of a trajectory right.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollart.workload.fit.observed import Floats, Observed
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.trajectory import TrajectorySpec

_DRAWN = 4000
"""At a time, until the mean is known well enough."""
_DRAWN_AT_MOST = 16_000
_ROUNDS = 2
"""The second one for what a context limit cuts off of figures that the first one has raised."""
_KNOWN = 0.01
"""Relative standard error of a mean total that is good enough."""
_BOUNDS = (0.8, 1.25)
"""A factor outside tells of a wrong model, which a level does not mend; it is cut to these."""
_WORTH = 0.005
"""A smaller correction is left out."""
_TOTALS: dict[str, Callable[[TrajectorySpec], float]] = {
    "output_tokens": lambda spec: sum(spec.output_tokens),
    "observation_tokens": lambda spec: sum(spec.new_tokens[1:]),
    "env_s": lambda spec: sum(spec.env_s),
}


def level_factors(task: dict[str, Any], observed: Observed, context_limit_tokens: int | None) -> dict[str, float]:
    """{figure: factor} for the figures of a task, given as keys of a profile, whose totals are off."""
    factors = {name: 1.0 for name in _TOTALS if _depends(task[name]) and len(observed.draws(name))}
    for _ in range(_ROUNDS):
        drawn = _drawn_totals(levelled(task, factors), list(factors), context_limit_tokens)
        steps = {name: _own_mean(name, observed) / max(1e-9, drawn[name].mean()) for name in factors}
        factors = {name: float(np.clip(factors[name] * step, *_BOUNDS)) for name, step in steps.items()}
        if all(abs(step - 1.0) <= _WORTH for step in steps.values()):
            break
    return {name: factor for name, factor in factors.items() if abs(factor - 1.0) > _WORTH}


def levelled(task: dict[str, Any], factors: Mapping[str, float]) -> dict[str, Any]:
    """The task with figures multiplied by their factors, in all turns."""
    changed = {}
    for figure, factor in factors.items():
        by_turn = task[figure].get("by_turn", {0: 1.0})
        own = {turn: float(f"{value * factor:.5g}") for turn, value in by_turn.items()}
        changed[figure] = task[figure] | {"by_turn": own}
    return task | changed


def _depends(keys: dict[str, Any]) -> bool:
    return any(name in keys for name in ("by_turn", "turns_correlation", "from_turns"))


def _drawn_totals(task: dict[str, Any], figures: list[str], limit_tokens: int | None) -> dict[str, Floats]:
    """Totals of trajectories, of as many as it takes to know their means."""
    alone = {name: keys for name, keys in task.items() if name != "compaction"}
    document = {"schema": 1, "name": "fitted", "tasks": {"fitted": alone}}
    profile = profile_from_mapping(document, "the fitted profile")
    workload = ProfileWorkload(profile, seed=0, context_limit_tokens=limit_tokens)
    totals: dict[str, list[float]] = {name: [] for name in figures}
    arrays: dict[str, Floats] = {}
    for first in range(0, _DRAWN_AT_MOST, _DRAWN):
        for prompt in range(first, first + _DRAWN):
            spec = workload.trajectory("fitted", prompt, 0, 0)
            for name, found in totals.items():
                found.append(_TOTALS[name](spec))
        arrays = {name: np.array(found) for name, found in totals.items()}
        if all(found.std() <= _KNOWN * found.mean() * np.sqrt(len(found)) for found in arrays.values()):
            break
    return arrays


def _own_mean(name: str, observed: Observed) -> float:
    """Mean total in the trace, of trajectories that did not fail."""
    draws = observed.draws(name)
    own = np.bincount(draws.trajectory, weights=draws.values, minlength=observed.trajectories)
    return float(own[observed.draws("turns").trajectory].mean())
