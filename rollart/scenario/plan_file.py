"""Plan files: the placement and the policy of a plan in the form that `simulate --plan` reads."""

import dataclasses
from typing import Any

import yaml

from rollart.domain.plan import Placement, PolicySpec


def placement_mapping(placement: Placement) -> dict[str, Any]:
    """The `placement` section that gives this placement."""
    engines = [
        {key: str(value) if key == "role" else value for key, value in dataclasses.asdict(group).items()}
        for group in placement.engine_groups
    ]
    return {
        "trainer": dataclasses.asdict(placement.trainer),
        "engines": [{key: value for key, value in engine.items() if value is not None} for engine in engines],
        "affinity": {task: list(groups) for task, groups in placement.affinity.items()},
        "shares": {
            task: {group: round(share, 6) for group, share in s.items()} for task, s in placement.shares.items()
        },
        "environment_slots": placement.environment_slots,
        "kv_return": str(placement.kv_return),
    }


def policy_mapping(policy: PolicySpec) -> dict[str, Any]:
    """The `policy` section that gives this policy."""
    return {"preset": policy.name, **{slot: dict(part) for slot, part in policy.parts.items()}}


def plan_text(placement: Placement, comment: str, *, policy: PolicySpec | None = None) -> str:
    """A plan file with this placement, and with a policy where one is given."""
    sections: dict[str, Any] = {"schema_version": 1, "placement": placement_mapping(placement)}
    if policy is not None:
        sections["policy"] = policy_mapping(policy)
    return f"# {comment}\n{yaml.safe_dump(sections, sort_keys=False)}"
