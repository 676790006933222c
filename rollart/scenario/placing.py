"""Turns the placement section of a scenario or plan file into a placement."""

from rollart.domain.plan import EngineGroup, KvReturn, Placement, Role, TrainerPlacement
from rollart.scenario.sections.plan import EngineGroupSection, PlacementSection


def placement_of(section: PlacementSection) -> Placement:
    """The placement that a section describes."""
    return Placement(
        engine_groups=tuple(_group(group) for group in section.engines),
        trainer=TrainerPlacement(**section.trainer.model_dump()),
        affinity={task: tuple(groups) for task, groups in section.affinity.items()},
        shares={task: dict(shares) for task, shares in section.shares.items()},
        environment_slots=section.environment_slots,
        kv_return=KvReturn(section.kv_return),
    )


def _group(section: EngineGroupSection) -> EngineGroup:
    fields = section.model_dump()
    fields["role"] = Role(fields["role"])
    return EngineGroup(**fields)
