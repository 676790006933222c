"""Fits the rates of a task: failed calls, success and its spread over prompts, compaction."""

from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from rollart.workload.fit.observed import Floats, Indices, Observed

FEWEST_COMPACTIONS = 5
_WIDEST_SPREAD = 10.0
_NODES, _MASS = hermegauss(80)
_MASS = _MASS / _MASS.sum()


def failure_keys(observed: Observed, call: str, seen: str) -> dict[str, Any]:
    """Keys of `reset_failures` or `step_failures`."""
    counts = {outcome: observed.calls.get((call, outcome), 0) for outcome in ("ok", "failed", "timeout")}
    calls = max(1, sum(counts.values()))
    keys: dict[str, Any] = {name: counts[name] / calls for name in ("failed", "timeout") if counts[name]}
    waits = observed.waits[call]
    if waits:
        keys["timeout_s"] = float(np.median(waits))
    keys["source"] = f"{counts['failed']} failures and {counts['timeout']} time-outs in {calls:,} calls; {seen}"
    return keys


def success_keys(observed: Observed, seen: str) -> dict[str, Any]:
    """Keys of `success`; a reward counts as a success by its size, cut to [0, 1]."""
    if not observed.rewards:
        return {"mean": 0.0, "guess": True, "source": f"no reward was recorded; {seen}"}
    groups = np.array([group for group, _ in observed.rewards])
    raw = np.array([reward for _, reward in observed.rewards])
    rewards = np.clip(raw, 0.0, 1.0)
    mean = float(rewards.mean())
    spread, note = _spread(groups, rewards, mean)
    graded = "" if np.isin(raw, (0.0, 1.0)).all() else "; rewards are graded, and drawn ones are 0 or 1 of equal mean"
    return {
        "mean": round(mean, 5),
        "spread": round(spread, 3),
        "source": f"{len(rewards):,} rewards; {seen}; {note}{graded}",
    }


def _spread(groups: Indices, rewards: Floats, mean: float) -> tuple[float, str]:
    """The spread at which two members of a group both succeed as often as they do."""
    sizes = np.bincount(groups).astype(np.float64)
    sums = np.bincount(groups, weights=rewards)
    products = sums**2 - np.bincount(groups, weights=rewards**2)
    pairs = sizes > 1
    if not pairs.any() or not 0.0 < mean < 1.0:
        return 0.0, "the spread over prompts can't be told"
    both = float((products[pairs] / (sizes[pairs] - 1.0)).sum() / sizes[pairs].sum())

    def excess(spread: float) -> float:
        chance = ndtr(ndtri(mean) * np.sqrt(1.0 + spread**2) - spread * _NODES)
        return float((_MASS * chance**2).sum()) - both

    if excess(0.0) >= 0.0:
        return 0.0, "members of a group succeed independently"
    if excess(_WIDEST_SPREAD) <= 0.0:
        return _WIDEST_SPREAD, "members of a group nearly always agree"
    return float(brentq(excess, 0.0, _WIDEST_SPREAD)), "spread from how often two members of a group both succeed"


def compaction_keys(observed: Observed, seen: str) -> dict[str, Any] | None:
    """Keys of `compaction`, or None where contexts were hardly ever cut."""
    if len(observed.compactions) < FEWEST_COMPACTIONS:
        return None
    before, behind = np.median(np.array(observed.compactions, dtype=np.float64), axis=0).tolist()
    return {
        "limit_tokens": max(1, round(before)),
        "summary_tokens": max(1, round(behind)),
        "source": f"medians of {len(observed.compactions):,} compactions, the observation after it included; {seen}",
    }
