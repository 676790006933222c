"""The trajectory as a driver plays it, and the interface it is asked for through.

A `TrajectorySpec` says everything that will happen if nothing interferes; a driver reveals it piece by piece
and the control plane never sees it. Lists hold plain Python numbers because they are read once per simulated
turn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from rollart.domain.errors import TraceError


class StepOutcome(IntEnum):
    """How an environment's reset or step ends."""

    OK = 0
    FAILED = 1
    TIMEOUT = 2


@dataclass(slots=True, kw_only=True)
class TrajectorySpec:
    """One trajectory to be played; per-turn lists have one entry for each turn.

    Not frozen: building one is on the simulator's hot path and freezing doubles it. Treat it as read-only,
    lists may be shared between specs.

    The context of generation k is `prompt_tokens + new_tokens[0]` for k = 0; afterwards it is what is kept of
    everything before (`kept_tokens[k]`, or all of it, output of turn k-1 included, where that is None) plus
    `new_tokens[k]`.
    """

    task: str
    prompt: int
    member: int
    attempt: int
    prompt_tokens: int
    """Leading tokens, the same in the whole group."""
    reset_s: float
    """For a time-out: how long the recording, or the profile, waited; the reset never answers."""
    reset_outcome: StepOutcome
    new_tokens: list[int]
    """Tokens appended before each generation; entry 0 is the own part of the first prompt, usually 0."""
    kept_tokens: list[int | None] | None
    """Leading tokens of the previous context that survive; None (entry, or the whole list): all of them."""
    output_tokens: list[int]
    """Generated tokens of each turn, at least 1."""
    env_s: list[float]
    """Environment step after each generation; for a time-out see `reset_s`."""
    env_outcome: list[StepOutcome] | None
    """None when every step is OK. What follows a step that is not OK happens only if a driver goes on."""
    reward_s: float
    reward: float
    truncated: bool = False
    """The context limit cut this trajectory short."""

    @property
    def turns(self) -> int:
        """Number of turns."""
        return len(self.output_tokens)

    def contexts(self) -> Iterator[int]:
        """Context in tokens at the start of each generation."""
        held = self.prompt_tokens
        for turn, new in enumerate(self.new_tokens):
            kept = self.kept_tokens[turn] if self.kept_tokens is not None else None
            context = (held if kept is None else kept) + new
            yield context
            held = context + self.output_tokens[turn]


class Workload(Protocol):
    """Trajectories by key; the same key gives the same trajectory, whatever was asked before."""

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """Trajectory `member` of the group of `prompt`, in its `attempt`-th start; all counted from 0."""
        ...


class MixedWorkload:
    """Several workloads, each for its own tasks."""

    def __init__(self, workloads: Mapping[str, Workload]) -> None:
        self._workloads = dict(workloads)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order given."""
        return tuple(self._workloads)

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """Ask the workload of `task`; TraceError for a task that nobody has."""
        workload = self._workloads.get(task)
        if workload is None:
            raise unknown_task(task, self._workloads, "this mix of workloads")
        return workload.trajectory(task, prompt, member, attempt)


def unknown_task(task: str, known: Mapping[str, object], place: str) -> TraceError:
    """The error for a task that `place` does not have; names those it has."""
    return TraceError(f"task {task!r} is not in {place}; it has {', '.join(sorted(known)) or 'no task'}")
