"""Turns the planner section of a scenario into rules, and checks the names in it."""

from collections.abc import Iterator

from rollart.domain.plan import Role
from rollart.domain.planning import EngineRule, Limits, Objective, Range, Rules, TaskRule, TrainerRule
from rollart.scenario.problems import Problem, nearest
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.sections.planner import (
    CountRange,
    EngineRuleSection,
    PlannerSection,
    ShareRange,
    TaskRuleSection,
    TrainerRuleSection,
)


def rules_of(section: PlannerSection) -> Rules:
    """The rules that a section describes."""
    return Rules(
        objective=Objective(section.objective),
        limits=Limits(
            budget_per_hour=section.hourly_budget, cost_per_step=section.cost_per_step, step_s=section.deadline_s
        ),
        trainer=_trainer(section.trainer),
        engines=tuple(_engines(rule) for rule in section.engines),
        tasks=tuple(_task(rule) for rule in section.tasks),
        roles=(Role.BOTH, Role.PREFILL, Role.DECODE) if section.disaggregate else (Role.BOTH,),
        environment_slots=_range(section.environment_slots),
        staleness=_range(section.staleness),
        staleness_penalty=section.staleness_penalty,
        redundant_members=_range(section.redundant_members),
        redundancy_penalty=section.redundancy_penalty,
    )


def planner_problems(document: ScenarioFile) -> Iterator[Problem]:
    """Names in the planner section that the scenario does not have."""
    section, pools = document.planner, list(document.cluster.pools)
    tasks = [task.name for task in document.tasks]
    named = [("trainer.pools", pool) for pool in section.trainer.pools or ()]
    named += [(f"engines.{index}.pool", rule.pool) for index, rule in enumerate(section.engines) if rule.pool]
    named += [(f"tasks.{index}.pool", rule.pool) for index, rule in enumerate(section.tasks) if rule.pool]
    for place, pool in named:
        if pool not in pools:
            yield Problem(place=f"planner.{place}", text=f"there is no pool {pool!r}; {nearest(pool, pools)}")
    for index, rule in enumerate(section.tasks):
        if rule.task not in tasks:
            text = f"there is no task {rule.task!r}; {nearest(rule.task, tasks)}"
            yield Problem(place=f"planner.tasks.{index}.task", text=text)


def _trainer(section: TrainerRuleSection) -> TrainerRule:
    return TrainerRule(
        pools=None if section.pools is None else tuple(section.pools),
        devices=_range(section.devices),
        tensor_parallel=section.tensor_parallel,
        pipeline_parallel=section.pipeline_parallel,
        context_parallel=section.context_parallel,
        expert_parallel=section.expert_parallel,
    )


def _engines(section: EngineRuleSection) -> EngineRule:
    return EngineRule(
        pool=section.pool,
        tensor_parallel=section.tensor_parallel,
        expert_parallel=section.expert_parallel,
        role=None if section.role is None else Role(section.role),
        engines=_range(section.engines),
        devices=_range(section.devices),
    )


def _task(section: TaskRuleSection) -> TaskRule:
    return TaskRule(
        task=section.task,
        pool=section.pool,
        role=None if section.role is None else Role(section.role),
        share=Range(least=section.share.least, most=section.share.most),
    )


def _range(section: CountRange | ShareRange | None) -> Range | None:
    return None if section is None else Range(least=section.least, most=section.most)
