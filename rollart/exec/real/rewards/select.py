"""Which reward function each task has."""

from collections.abc import Mapping

from rollart.domain.execution import ExecutionSettings
from rollart.exec.real.rewards.http import HttpReward
from rollart.exec.real.rewards.scoring import RewardFunction
from rollart.exec.real.tokens import Tokenizer

ENVIRONMENT = "environment"
"""Of a task whose environment gives the reward."""


def reward_functions(settings: ExecutionSettings, tokenizer: Tokenizer) -> Mapping[str, RewardFunction]:
    """The functions, by task; tasks whose environment gives the reward have none."""
    return {task.task: HttpReward(task, tokenizer) for task in settings.tasks if task.reward != ENVIRONMENT}
