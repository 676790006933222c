"""What one trajectory of each task asks for, measured on a sample of the workload."""

from dataclasses import dataclass

import numpy as np

from rollart.domain.batch import groups_per_batch
from rollart.domain.job import Job
from rollart.domain.task import Task
from rollart.workload.trajectory import TrajectorySpec, Workload

_PROMPTS = 48
_MEMBERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDemand:
    """Means over trajectories of one task; tokens and seconds are per trajectory."""

    task: str
    trajectories: int
    """That a batch trains on."""
    turns: float
    new_tokens: float
    """Prompt and observations: what is prefilled when the prefix cache holds the history."""
    history_tokens: float
    """Sum of the contexts of all turns: what is prefilled when it does not."""
    output_tokens: float
    context_tokens: float
    """Mean over the generated tokens: what a decode iteration reads of it."""
    peak_tokens: float
    """Context at the end: what it holds of the KV cache at most."""
    environment_s: float
    """Reset and steps."""
    longest: tuple[float, float]
    """Output tokens and environment seconds of the expected longest trajectory of a batch, by output tokens."""
    lengths: tuple[int, ...]
    """Prompt and response tokens of the sampled trajectories, for the trainer."""


def demands(job: Job, workload: Workload) -> list[TaskDemand]:
    """The demand of each task of a job."""
    groups = groups_per_batch(job.tasks, job.training.batch_size)
    return [_demand(task, groups[task.name] * task.group_size, job, workload) for task in job.tasks]


def _demand(task: Task, trajectories: int, job: Job, workload: Workload) -> TaskDemand:
    specs = [
        workload.trajectory(task.name, prompt, member, 0)
        for prompt in range(_PROMPTS)
        for member in range(min(task.group_size, _MEMBERS))
    ]
    specs = [spec for spec in specs if spec.turns]
    output = np.array([sum(spec.output_tokens) for spec in specs], dtype=float)
    environment_s = np.array([spec.reset_s + sum(spec.env_s) for spec in specs])
    lengths = [_length(spec, job.training.context_limit) for spec in specs]
    last = min(len(specs) - 1, round(len(specs) * trajectories / (trajectories + 1)))
    longest = int(np.argsort(output)[last])
    return TaskDemand(
        task=task.name,
        trajectories=trajectories,
        turns=float(np.mean([spec.turns for spec in specs])),
        new_tokens=float(np.mean([spec.prompt_tokens + sum(spec.new_tokens) for spec in specs])),
        history_tokens=float(np.mean([sum(spec.contexts()) for spec in specs])),
        output_tokens=float(output.mean()),
        context_tokens=float(np.mean([_context_while_decoding(spec) for spec in specs])),
        peak_tokens=float(np.mean(lengths)),
        environment_s=float(environment_s.mean()),
        longest=(float(output[longest]), float(np.quantile(environment_s, trajectories / (trajectories + 1)))),
        lengths=tuple(lengths),
    )


def _length(spec: TrajectorySpec, limit: int) -> int:
    return min(limit, spec.prompt_tokens + sum(spec.new_tokens) + sum(spec.output_tokens))


def _context_while_decoding(spec: TrajectorySpec) -> float:
    made = np.array(spec.output_tokens, dtype=float)
    before = np.fromiter(spec.contexts(), dtype=float)
    return float(np.average(before + made / 2, weights=made))
