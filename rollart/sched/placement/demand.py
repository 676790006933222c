"""What the groups of a task ask for under a group rule: work that is paid for, and what a group waits for.

A group is complete when `size` of its `started` members are. Which are the first is told at a pace (seconds a generated
token); members that are cut off then have worked as long as the last that was needed.
"""

from dataclasses import dataclass

import numpy as np

from rollart.domain.batch import groups_per_batch
from rollart.domain.job import Job
from rollart.domain.task import Task
from rollart.sched.placement.episodes import Round
from rollart.sched.placement.sample import Array, TaskSample, sample_of
from rollart.workload.trajectory import Workload

PACE_S = 0.02
"""Seconds a token at which members are ranked: between what engines need with few and with many requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDemand:
    """One task under a group rule; means are over started members, cut-off ones with what they did."""

    task: Task
    groups: int
    """That a batch trains on."""
    started: int
    """Members that a group starts."""
    output_tokens: float
    new_tokens: float
    prompt_tokens: float
    history_tokens: float
    context_tokens: float
    """Mean over the generated tokens: what a decode iteration reads."""
    held_tokens: float
    """Mean context over an episode."""
    turns: float
    environment_s: float
    busy_s: float
    reward_s: float
    group_output_tokens: Array
    """Of the member that completes each sampled group."""
    group_waits_s: Array
    """Seconds that this member spends in its environment and on its reward."""
    member_output_tokens: Array
    """Of all started members, for the draining of a batch."""
    member_waits_s: Array
    lengths: Array
    """Tokens of the members that are trained on."""
    rounds: tuple[tuple[Round, ...], ...]
    """Of all started members, group by group, for a batch that takes its turns together."""

    @property
    def trajectories(self) -> int:
        """That a batch trains on."""
        return self.groups * self.task.group_size

    @property
    def starts(self) -> int:
        """Trajectories that are started for a batch."""
        return self.groups * self.started


def samples(job: Job, workload: Workload, most_redundant: int) -> list[TaskSample]:
    """A sample of every task, with room for redundant members."""
    return [sample_of(job, task, workload, task.group_size + most_redundant) for task in job.tasks]


def demands(job: Job, found: list[TaskSample], redundant: int) -> list[TaskDemand]:
    """The demand of each task where groups start `redundant` members beyond their size."""
    groups = groups_per_batch(job.tasks, job.training.batch_size)
    return [_demand(sample, groups[sample.task.name], redundant) for sample in found]


def _demand(sample: TaskSample, groups: int, redundant: int) -> TaskDemand:
    size = sample.task.group_size
    started = size + redundant
    waits_s = sample.environment_s + sample.reward_s
    latency_s = (sample.output_tokens * PACE_S + waits_s)[:, :started]
    order = np.argsort(latency_s, axis=1, kind="stable")
    completes = order[:, size - 1]
    rows = np.arange(len(order))
    done_s = latency_s[rows, completes]
    part = np.minimum(1.0, done_s[:, None] / np.maximum(latency_s, 1e-9))

    def paid(values: Array) -> float:
        return float((values[:, :started] * part).mean())

    output = paid(sample.output_tokens)
    return TaskDemand(
        task=sample.task,
        groups=groups,
        started=started,
        output_tokens=output,
        new_tokens=paid(sample.new_tokens),
        prompt_tokens=float(sample.prompt_tokens[:, :started].mean()),
        history_tokens=paid(sample.history_tokens),
        context_tokens=paid(sample.read_tokens) / output,
        held_tokens=float(sample.held_tokens[:, :started].mean()),
        turns=paid(sample.turns),
        environment_s=paid(sample.environment_s),
        busy_s=paid(sample.busy_s),
        reward_s=float(sample.reward_s.mean()),
        group_output_tokens=sample.output_tokens[rows, completes],
        group_waits_s=waits_s[rows, completes],
        member_output_tokens=(sample.output_tokens[:, :started] * part).ravel(),
        member_waits_s=(waits_s[:, :started] * part).ravel(),
        lengths=np.take_along_axis(sample.length[:, :started], order[:, :size], axis=1).ravel(),
        rounds=tuple(one for at, one in enumerate(sample.rounds) if at % sample.length.shape[1] < started),
    )
