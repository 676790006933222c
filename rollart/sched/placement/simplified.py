"""A plan with fewer groups: equal engines of a pool become one group, and no share is kept.

The model may cut the engines of a pool into groups and give each its part of a task, exactly. A router that looks at
load does nearly the same with one group, and better where a part is less than a few trajectories; the simulator knows.
"""

from dataclasses import replace

from rollart.domain.plan import EngineGroup, Plan


def simplified(plan: Plan) -> Plan | None:
    """The plan with merged groups and without shares; None where that is the plan itself."""
    placement = plan.placement
    merged: dict[EngineGroup, EngineGroup] = {}
    new_name: dict[str, str] = {}
    for group in placement.engine_groups:
        alike = replace(group, name="", engines=1)
        one = merged.get(alike)
        merged[alike] = group if one is None else replace(one, engines=one.engines + group.engines)
        new_name[group.name] = merged[alike].name
    affinity = {
        task: tuple(dict.fromkeys(new_name[name] for name in names)) for task, names in placement.affinity.items()
    }
    simple = replace(placement, engine_groups=tuple(merged.values()), affinity=affinity, shares={})
    return None if simple == placement else replace(plan, placement=simple)
