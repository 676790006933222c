"""Small controller configurations, and a run-log header for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rollart.domain.plan import Role
from rollart.runlog.header import (
    EngineEntry,
    EnvironmentEntry,
    PoolEntry,
    RewardEntry,
    RunHeader,
    TrainerEntry,
)
from rollart.sched import ControllerConfig, EngineClass, TaskConfig, resolve

Overrides = Mapping[str, Mapping[str, Any]]


def task(name: str = "maze", *, size: int = 2, groups: int = 1, max_turns: int = 3, **fields: Any) -> TaskConfig:
    """A task of `groups` groups of `size` in each batch, on engine class 0 unless told otherwise."""
    fields = {"suited": (0,), **fields}
    return TaskConfig(name=name, group_size=size, groups_per_batch=groups, max_turns=max_turns, **fields)


def engines(name: str = "h20", count: int = 2, **fields: Any) -> EngineClass:
    """A class of engines that serve both phases unless told otherwise."""
    return EngineClass(name=name, engines=count, **{"role": Role.BOTH, **fields})


def setup(
    preset: str = "sync+",
    overrides: Overrides | None = None,
    *,
    tasks: Sequence[TaskConfig] | None = None,
    classes: Sequence[EngineClass] | None = None,
    steps: int = 2,
    slots: int = 64,
    context_limit: int = 1000,
) -> ControllerConfig:
    """A configuration of a preset with overrides."""
    policy = resolve(preset, overrides)
    return ControllerConfig(
        tasks=tuple(tasks or (task(),)),
        classes=tuple(classes or (engines(),)),
        context_limit=context_limit,
        steps=steps,
        environment_slots=slots,
        policy_name=policy.name,
        policy=policy.parts,
    )


def header(config: ControllerConfig) -> RunHeader:
    """What a run log of this configuration would begin with."""
    groups = [config.classes[index] for index in config.engine_classes]
    return RunHeader(
        driver="toy",
        policy=config.policy_name,
        seed=0,
        steps=config.steps,
        warmup_steps=0,
        scenario="toy",
        code_version="0",
        controller=msgspec.to_builtins(config),
        pools=(PoolEntry(name="pool", device="H20", devices=8, price_per_hour=1.0),),
        engines=tuple(
            EngineEntry(engine=index, group=group.name, pool="pool", devices=1, role=group.role.value)
            for index, group in enumerate(groups)
        ),
        trainer=TrainerEntry(pool="pool", devices=8),
        tasks=tuple(each.name for each in config.tasks),
        environment=EnvironmentEntry(slots=config.environment_slots, cores=1.0, price_per_core_hour=0.0),
        reward=RewardEntry(price_per_second=0.0),
    )
