"""Turns the tasks and the training section of a scenario file into domain objects."""

from rollart.domain.task import EnvironmentNeeds, RewardKind, RewardNeeds, Task
from rollart.domain.training import Training
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.sections.tasks import TaskSection

BYTES_PER_GB = 1e9


def tasks_of(document: ScenarioFile) -> tuple[Task, ...]:
    """The tasks, with equal shares where the file gives none."""
    equal = 1.0 / len(document.tasks)
    return tuple(_task(section, equal) for section in document.tasks)


def training_of(document: ScenarioFile) -> Training:
    """The training section as it is."""
    return Training(**document.training.model_dump())


def _task(section: TaskSection, equal_share: float) -> Task:
    reward = section.reward
    return Task(
        name=section.name,
        share=equal_share if section.share is None else section.share,
        group_size=section.group_size,
        max_turns=section.max_turns,
        environment=EnvironmentNeeds(
            cores=section.environment.cores, image_bytes=section.environment.image_gb * BYTES_PER_GB
        ),
        reward=RewardNeeds(
            kind=RewardKind(reward.kind),
            workers=reward.workers,
            engine_group=reward.engine_group,
            judge_tokens=reward.judge_tokens,
        ),
    )
