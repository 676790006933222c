"""Checks of who gives the rewards of a real run: a function, Ray Serve, or a judge that the placement has."""

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import ENVIRONMENT, JUDGE, SERVE, JudgeExecution, JudgeRule
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.sections.execution import JudgeSection
from rollart.scenario.sections.tasks import TaskSection

TRANSCRIPT = ("{text}", "{answer}")


def check_reward(task: TaskSection, reward: str) -> None:
    """Raise ScenarioError where nobody can give the reward of a task."""
    place = f"tasks.{task.name}.execution"
    plain = reward in (ENVIRONMENT, JUDGE) or reward.startswith(("http://", "https://"))
    module, _, name = reward.removeprefix(SERVE).partition(":")
    if not plain and not (reward.startswith(SERVE) and module and name):
        raise ScenarioError(
            f"{place}.reward: {reward!r} must be `environment`, `judge`, `serve:package.module:name`, or begin with "
            "http:// or https://"
        )
    if (reward == JUDGE) != (task.reward.kind == "engine"):
        raise ScenarioError(
            f"{place}.reward: is {reward!r} while tasks.{task.name}.reward.kind is {task.reward.kind!r}; "
            "`judge` and kind engine go together"
        )


def judge_of(task: TaskSection, reward: str, section: JudgeSection | None) -> JudgeExecution | None:
    """What the judge of a task is asked. Raises ScenarioError."""
    place = f"tasks.{task.name}.execution.judge"
    if (section is None) == (reward == JUDGE):
        raise ScenarioError(f"{place}: is {'missing' if section is None else 'given'}, and the reward is {reward!r}")
    if section is None:
        return None
    if not any(field in section.prompt for field in TRANSCRIPT):
        raise ScenarioError(f"{place}.prompt: must show the judge {{text}} or {{answer}}")
    fields = section.model_dump()
    fields["allowed"], fields["stop"] = tuple(fields["allowed"]), tuple(fields["stop"])
    return JudgeExecution(**{**fields, "rule": JudgeRule(section.rule)})


def check_judge_weights(document: ScenarioFile) -> None:
    """Raise ScenarioError where weights are given for no judge, or a judge's own model has none."""
    groups = document.placement.engines if document.placement is not None else []
    judges = {group.name: group.model for group in groups if group.role == "judge"}
    weights = {} if document.execution is None else document.execution.judge_weights
    for name in weights:
        if name not in judges:
            known = ", ".join(judges) or "none"
            raise ScenarioError(f"execution.judge_weights.{name}: no such group of judges; known: {known}")
    for name, model in judges.items():
        if model is not None and name not in weights:
            raise ScenarioError(f"execution.judge_weights.{name}: is missing; the group judges with {model}")
