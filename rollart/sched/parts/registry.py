"""The rules of every slot by name, and a policy built from their names and parameters."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollart.domain.errors import ScenarioError
from rollart.sched.parts.admission import Admission, Quota
from rollart.sched.parts.group import FirstOf, GroupRule
from rollart.sched.parts.interaction import Interaction, PerBatch, PerTrajectory
from rollart.sched.parts.recovery import Backoff, Recovery
from rollart.sched.parts.router import LeastLoaded, RoundRobin, Router
from rollart.sched.parts.staleness import AtStart, EveryTurn, StalenessRule
from rollart.sched.parts.sync import SyncRule, WeightSync

SLOTS: dict[str, dict[str, type[Any]]] = {
    "admission": {"quota": Quota},
    "group": {"first_of": FirstOf},
    "staleness": {"every_turn": EveryTurn, "at_start": AtStart},
    "router": {"least_loaded": LeastLoaded, "round_robin": RoundRobin},
    "sync": {"weight_sync": WeightSync},
    "interaction": {"per_trajectory": PerTrajectory, "per_batch": PerBatch},
    "recovery": {"backoff": Backoff},
}
"""Slot -> name -> rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One rule in every slot."""

    admission: Admission
    group: GroupRule
    staleness: StalenessRule
    router: Router
    sync: SyncRule
    interaction: Interaction
    recovery: Recovery


def register(slot: str, name: str) -> Callable[[type[Any]], type[Any]]:
    """Class decorator that adds a rule, a frozen dataclass, to a slot."""

    def add(rule: type[Any]) -> type[Any]:
        SLOTS[slot][name] = rule
        return rule

    return add


def build(parts: Mapping[str, Mapping[str, Any]]) -> Policy:
    """The policy that `parts` (slot -> {kind, parameters}) describes; ScenarioError names what is wrong."""
    missing = set(SLOTS) - set(parts)
    if missing:
        raise ScenarioError(f"policy: no rule for {', '.join(sorted(missing))}")
    return Policy(**{slot: _rule(slot, parts[slot]) for slot in SLOTS})


def _rule(slot: str, part: Mapping[str, Any]) -> Any:
    kinds = SLOTS[slot]
    kind = part.get("kind", next(iter(kinds)))
    if kind not in kinds:
        raise ScenarioError(f"policy.{slot}.kind: {kind!r} is unknown; known: {', '.join(kinds)}")
    rule = kinds[kind]
    known = {field.name: field.type for field in dataclasses.fields(rule)}
    parameters = {key: value for key, value in part.items() if key != "kind"}
    for key, value in parameters.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known) or 'none'}"
            raise ScenarioError(f"policy.{slot}.{key}: unknown for {kind!r}{hint}")
        _check_type(slot, key, value, rule)
    try:
        return rule(**parameters)
    except (ValueError, TypeError) as error:
        raise ScenarioError(f"policy.{slot}: {error}") from None


def _check_type(slot: str, key: str, value: Any, rule: type[Any]) -> None:
    """Refuse a value whose kind (number, flag, text) differs from the default's."""
    default = next(field.default for field in dataclasses.fields(rule) if field.name == key)
    if isinstance(default, bool) or isinstance(value, bool):
        fits = isinstance(default, bool) and isinstance(value, bool)
    elif isinstance(default, float):
        fits = isinstance(value, (int, float))
    elif default is dataclasses.MISSING:
        fits = True
    else:
        fits = isinstance(value, type(default))
    if not fits:
        raise ScenarioError(f"policy.{slot}.{key}: {value!r} is not a {type(default).__name__}")
