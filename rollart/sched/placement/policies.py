"""Policies to choose from: staleness bounds and redundant members within the user's limits, each at its penalty."""

from collections.abc import Iterator

from rollart.domain.errors import ScenarioError
from rollart.domain.plan import PolicySpec
from rollart.domain.planning import Range, Rules
from rollart.sched.presets import resolve

MOST_CHOICES = 16
"""Values of a decision that are tried; a wider range is an error of the user."""


def policies(policy: PolicySpec, rules: Rules) -> list[tuple[PolicySpec, float]]:
    """Policies with the factor that their penalties put on the objective; ScenarioError where the limits allow none."""
    found = []
    for staleness, stale_factor in _choices(rules.staleness, rules.staleness_penalty, "staleness"):
        for members, member_factor in _choices(rules.redundant_members, rules.redundancy_penalty, "redundant_members"):
            changed = _changed(policy, staleness, members)
            if changed is not None:
                found.append((changed, stale_factor * member_factor))
    if not found:
        raise ScenarioError(f"planner.staleness: policy {policy.name} has no rule of staleness that can be bounded")
    return found


def _choices(bounds: Range | None, penalty: float, key: str) -> Iterator[tuple[int | None, float]]:
    if bounds is None:
        yield None, 1.0
        return
    least, most = int(bounds.least), int(bounds.most)
    if most - least >= MOST_CHOICES:
        raise ScenarioError(f"planner.{key}: {least} to {most} are {most - least + 1} choices; at most {MOST_CHOICES}")
    for value in range(least, most + 1):
        yield value, 1.0 + penalty * (value - least)


def _changed(policy: PolicySpec, staleness: int | None, members: int | None) -> PolicySpec | None:
    """The policy with these parameters; the look-ahead follows the staleness bound, as in a scenario."""
    overrides = {slot: dict(part) for slot, part in policy.parts.items()}
    if staleness is not None:
        if "bound" not in overrides["staleness"]:
            return None
        overrides["staleness"]["bound"] = staleness
        overrides["admission"].pop("lookahead", None)
    if members is not None:
        overrides["group"]["redundant_members"] = members
    return resolve(policy.name, overrides)
