"""A sample of the workload: groups of episodes of each task, as arrays."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rollart.domain.job import Job
from rollart.domain.task import Task
from rollart.sched.parts import build
from rollart.sched.placement.episodes import Episode, Round, episode
from rollart.workload.trajectory import Workload

PROMPTS = 64
"""Groups that are looked at of each task."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSample:
    """Episodes of one task; every array has the shape (groups, members)."""

    task: Task
    output_tokens: Array
    new_tokens: Array
    prompt_tokens: Array
    history_tokens: Array
    read_tokens: Array
    environment_s: Array
    busy_s: Array
    held_tokens: Array
    length: Array
    turns: Array
    reward_s: Array
    rounds: tuple[tuple[Round, ...], ...]
    """Of each member, group by group."""


def sample_of(job: Job, task: Task, workload: Workload, members: int, prompts: int = PROMPTS) -> TaskSample:
    """Groups of `members` episodes of a task, those of its first prompts."""
    limit, recovery = job.training.context_limit, build(job.plan.policy.parts).recovery
    found = [
        [episode(workload, task, limit, recovery, prompt, member) for member in range(members)]
        for prompt in range(prompts)
    ]
    arrays = {
        field.name: np.array([[getattr(one, field.name) for one in group] for group in found], dtype=float)
        for field in fields(Episode)
        if field.name != "rounds"
    }
    return TaskSample(task=task, rounds=tuple(tuple(one.rounds) for group in found for one in group), **arrays)
