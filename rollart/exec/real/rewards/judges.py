"""The judges of a plan: which model and tokenizer each group of them has, and how its judgements are sampled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import ExecutionSettings, JudgeExecution, TaskExecution
from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.domain.task import Task
from rollart.exec.real.engines.sampling import sampling_of
from rollart.exec.real.engines.spec import Sampling
from rollart.exec.real.model_folder import model_folder
from rollart.exec.real.rewards.rules import question
from rollart.exec.real.tokens import Tokenizer, tokenizer_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModel:
    """What the engines of one group of judges are told."""

    folder: Path
    tokenizer: Tokenizer
    sampling: Mapping[str, Sampling]
    """By task that is judged here."""


def judges_of(
    job: Job, settings: ExecutionSettings, model: Path, tokenizer: Tokenizer, folder: Path
) -> dict[str, JudgeModel]:
    """The judges by engine group; without weights of their own they judge with `model`, as it is before training.

    Raises ScenarioError where a model or a token does not exist, or a question leaves no room for a dialogue.
    """
    judges = {}
    for group in job.plan.placement.engine_groups:
        if group.role is not Role.JUDGE:
            continue
        own, words = model, tokenizer
        weights = settings.judge_weights.get(group.name)
        if weights is not None:
            own = model_folder(replace(settings, weights=weights), folder / "judges" / group.name, job.seed)
            words = tokenizer_of("model", own, job.model.vocabulary)
        asked = judged_tasks(job, settings, group.name)
        for task, execution, judge in asked:
            _check_room(job, task, judge, words, execution.task)
        sampling = {
            execution.task: sampling_of(words, judge.temperature, judge.allowed, judge.stop)
            for _, execution, judge in asked
        }
        judges[group.name] = JudgeModel(folder=own, tokenizer=words, sampling=sampling)
    return judges


def judged_tasks(job: Job, settings: ExecutionSettings, group: str) -> list[tuple[Task, TaskExecution, JudgeExecution]]:
    """The tasks that a group judges."""
    needs = {task.name: task for task in job.tasks}
    return [
        (needs[each.task], each, each.judge)
        for each in settings.tasks
        if each.judge is not None and needs[each.task].reward.engine_group == group
    ]


def _check_room(job: Job, task: Task, judge: JudgeExecution, tokenizer: Tokenizer, name: str) -> None:
    empty = question(judge.prompt, {"task": name, "text": "", "answer": ""})
    taken = len(tokenizer.observation(empty, first=True)) + task.reward.judge_tokens
    if taken >= job.training.context_limit:
        raise ScenarioError(
            f"tasks.{name}.execution.judge.prompt: question and judge_tokens take {taken} tokens; must be below "
            f"training.context_limit, which is {job.training.context_limit}"
        )
