"""Turns the `execution` sections of a scenario into the settings of a real run."""

from collections.abc import Mapping, Sequence

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import (
    AdvantageScale,
    ExecutionSettings,
    Learning,
    MooncakeAddresses,
    Proximal,
    Reduction,
    TaskExecution,
    WeightTransfer,
)
from rollart.scenario.judging import check_judge_weights, check_reward, judge_of
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.sections.execution import ExecutionSection, LearningSection
from rollart.scenario.sections.tasks import TaskSection


def execution_of(document: ScenarioFile) -> ExecutionSettings:
    """The settings; ScenarioError where the file says nothing about a real run."""
    section = document.execution
    if section is None:
        raise ScenarioError("execution: is missing; a real run needs it (a simulation, and `--fake`, do not)")
    unknown = sorted(set(section.cores) - set(document.cluster.pools))
    if unknown:
        raise ScenarioError(f"execution.cores.{unknown[0]}: no such pool; known: {', '.join(document.cluster.pools)}")
    check_judge_weights(document)
    fields = document.model if isinstance(document.model, Mapping) else None
    plain = section.model_dump(exclude={"learning", "weight_transfer", "mooncake"})
    return ExecutionSettings(
        **plain,
        model_fields=fields,
        tasks=tuple(_task(task) for task in document.tasks),
        learning=_learning(section.learning, document.tasks),
        weight_transfer=WeightTransfer(section.weight_transfer),
        mooncake=_mooncake(section),
    )


def _mooncake(section: ExecutionSection) -> MooncakeAddresses | None:
    """The store; ScenarioError where it is given without need, or needed and not given."""
    needed = WeightTransfer(section.weight_transfer) is WeightTransfer.MOONCAKE
    if needed and section.mooncake is None:
        raise ScenarioError("execution.mooncake: is missing; weight_transfer 'mooncake' needs the store's `master`")
    if section.mooncake is None:
        return None
    if not needed:
        raise ScenarioError(
            f"execution.mooncake: is given, and weight_transfer is '{section.weight_transfer}'; must be 'mooncake'"
        )
    return MooncakeAddresses(**section.mooncake.model_dump())


def _task(section: TaskSection) -> TaskExecution:
    if section.execution is None:
        raise ScenarioError(f"tasks.{section.name}.execution: is missing; a real run needs an environment")
    reward = section.execution.reward
    check_reward(section, reward)
    fields = section.execution.model_dump(exclude={"judge", "entropy_bonus"})
    fields["allowed"], fields["stop"] = tuple(fields["allowed"]), tuple(fields["stop"])
    return TaskExecution(task=section.name, judge=judge_of(section, reward, section.execution.judge), **fields)


def _learning(section: LearningSection, tasks: Sequence[TaskSection]) -> Learning:
    fields = section.model_dump()
    fields["proximal"] = Proximal(section.proximal)
    fields["advantage_scale"] = AdvantageScale(section.advantage_scale)
    fields["reduction"] = Reduction(section.reduction)
    own = {task.name: task.execution.entropy_bonus for task in tasks if task.execution is not None}
    fields["task_entropy_bonus"] = {task: bonus for task, bonus in own.items() if bonus is not None}
    return Learning(**fields)
