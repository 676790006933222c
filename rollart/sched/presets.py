"""Published systems as choices of parts.

Where a source leaves a detail open, the docstring of the part, or the comment here, says how it is read.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from rollart.domain.errors import ScenarioError
from rollart.domain.plan import PolicySpec
from rollart.sched.parts import SLOTS, build

Parts = dict[str, dict[str, Any]]

_SYNC_PLUS: Parts = {
    # A batch is rolled out on the weights of the step before, and nothing else is under way.
    "admission": {"kind": "quota", "base": "installed", "lookahead": 0},
    "group": {"kind": "first_of", "surplus": "stop"},
    "staleness": {"kind": "at_start"},
    "router": {"kind": "least_loaded"},
    "sync": {"kind": "weight_sync", "order": "update_first", "transport": "broadcast"},
    "interaction": {"kind": "per_trajectory"},
    "recovery": {"kind": "backoff"},
}


def _over(base: Parts, **slots: dict[str, Any]) -> Parts:
    """`base` with the given slots replaced."""
    return {**base, **slots}


PRESETS: dict[str, Parts] = {
    # Batch-wise environment interaction and rewards after the rollout.
    "sync": _over(_SYNC_PLUS, interaction={"kind": "per_batch"}),
    "sync+": _SYNC_PLUS,
    # Training on batch k beside the rollout of batch k + 1, which runs to its end on the weights it began with.
    "one-off": _over(
        _SYNC_PLUS,
        admission={"kind": "quota", "base": "taken", "lookahead": 0},
        sync={"kind": "weight_sync", "order": "batch_first", "transport": "broadcast"},
    ),
    # Aggregate bound eta = 1 at the start; updates interrupt; sticky round robin (2505.24298).
    "areal": _over(
        _SYNC_PLUS,
        admission={"kind": "quota", "base": "installed", "lookahead": 1},
        group={"kind": "first_of", "surplus": "keep"},
        router={"kind": "round_robin"},
        sync={"kind": "weight_sync", "order": "update_first", "in_flight": "interrupt"},
    ),
    # Six-step weight sync with the pull hidden, alpha = 1 at every turn, redundant environments (2512.22560).
    # The paper gives no number of redundant environments: one group in sixteen and one member are our guess.
    "rollart": {
        "admission": {"kind": "quota", "base": "taken", "lookahead": 1, "redundant_groups": 0.0625},
        "group": {"kind": "first_of", "redundant_members": 1, "surplus": "keep"},
        "staleness": {"kind": "every_turn", "bound": 1},
        "router": {"kind": "least_loaded"},
        "sync": {"kind": "weight_sync", "order": "batch_first", "transport": "store", "prefetch": True},
        "interaction": {"kind": "per_trajectory"},
        "recovery": {"kind": "backoff"},
    },
}
"""Preset -> slot -> {kind, parameters}."""


def resolve(name: str, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> PolicySpec:
    """A preset with some parameters replaced, checked; an override with another `kind` replaces the whole part.

    A staleness bound of `alpha` without an admission look-ahead sets both, and alpha = 0 under `batch_first` means
    that the new weights are published before the next rollout starts.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ScenarioError(f"policy: {name!r} is unknown; known: {', '.join(PRESETS)}{hint}")
    parts = {slot: dict(part) for slot, part in PRESETS[name].items()}
    overrides = overrides or {}
    for slot, part in overrides.items():
        if slot not in SLOTS:
            raise ScenarioError(f"policy.{slot}: unknown; known: preset, {', '.join(SLOTS)}")
        same = part.get("kind", parts[slot]["kind"]) == parts[slot]["kind"]
        parts[slot] = {**(parts[slot] if same else {}), **part}
    _align(parts, overrides)
    build(parts)
    _refuse_standstill(parts)
    return PolicySpec(name=name, parts=parts)


def _align(parts: Parts, overrides: Mapping[str, Mapping[str, Any]]) -> None:
    """Let admission and update order follow a staleness bound that was set alone."""
    bound = overrides.get("staleness", {}).get("bound")
    if isinstance(bound, int) and "lookahead" not in overrides.get("admission", {}):
        parts["admission"]["lookahead"] = bound
    if parts["admission"].get("lookahead") == 0 and parts["staleness"].get("bound") == 0:
        parts["admission"]["base"] = "installed"
        parts["sync"]["order"] = "update_first"


def _refuse_standstill(parts: Parts) -> None:
    """A batch that is taken before the update must be admitted before it."""
    admission, order = parts["admission"], parts["sync"].get("order")
    if order == "batch_first" and admission.get("base") == "installed" and not admission.get("lookahead"):
        raise ScenarioError(
            "policy.admission: base 'installed' with lookahead 0 never admits the batch that sync order 'batch_first' "
            "takes before an update; must be lookahead 1 or more, base 'taken' or order 'update_first'"
        )
