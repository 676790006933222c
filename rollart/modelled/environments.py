"""Environments on their hosts: resets and steps that take time, contend for cores, fail and hang.

Contention: a reset or step takes its recorded time, stretched by demand over cores at its start where demand is
higher; what starts later does not slow it down further. That keeps a step at one event; the error is second-order
while the load changes slowly against the length of a step.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rollart.costs.environment import step_s
from rollart.domain.cluster import EnvironmentHosts, Link
from rollart.domain.commands import CloseEnvironment, ResetEnvironment, StepEnvironment
from rollart.domain.events import EnvironmentClosed, EnvironmentFailed, EnvironmentReady, EnvironmentStepped, Event
from rollart.domain.task import Task
from rollart.domain.trajectory import Cause
from rollart.modelled.clock import Clock
from rollart.modelled.episodes import Episodes
from rollart.modelled.network import SharedLink
from rollart.workload.trajectory import StepOutcome, TrajectorySpec

Order = ResetEnvironment | StepEnvironment


class _Environment:
    """One environment: what it will do, and the order that it works on."""

    __slots__ = ("busy_cores", "cores", "image_bytes", "order", "spec")

    def __init__(self, task: Task, spec: TrajectorySpec) -> None:
        self.spec = spec
        self.cores = task.environment.cores
        self.image_bytes = task.environment.image_bytes
        self.order: int | None = None
        self.busy_cores = 0.0


class Environments:
    """All environments of a run."""

    __slots__ = (
        "_clock",
        "_cores",
        "_demand",
        "_episodes",
        "_hosts",
        "_images",
        "_made",
        "_pulling",
        "_registry",
        "_report",
        "_slots",
        "_slots_since_s",
        "_tasks",
        "busy_core_s",
        "slots_s",
    )

    def __init__(
        self,
        hosts: EnvironmentHosts,
        tasks: Mapping[str, Task],
        episodes: Episodes,
        clock: Clock,
        report: Callable[[Event], None],
    ) -> None:
        self._clock = clock
        self._report = report
        self._episodes = episodes
        self._tasks = tasks
        self._hosts = hosts.count
        self._cores = hosts.cores
        self._demand = 0.0
        self._registry = SharedLink(Link(bandwidth_bytes_per_s=hosts.image_bandwidth_bytes_per_s), clock)
        self._images: set[tuple[str, int]] = set()
        """Task and host where the image is."""
        self._pulling: dict[tuple[str, int], list[tuple[_Environment, ResetEnvironment]]] = {}
        """Task and host where the image is on its way, with the resets that wait for it."""
        self._made: dict[int, _Environment] = {}
        """Trajectory -> its environment."""
        self._slots = 0
        self._slots_since_s = 0.0
        self.busy_core_s = 0.0
        self.slots_s = 0.0

    # Commands

    def reset(self, command: ResetEnvironment) -> None:
        """Pull the image if its host lacks it, then start."""
        self._count_slots(1)
        made = _Environment(self._tasks[command.task], self._episodes.begin(command))
        self._made[command.trajectory] = made
        host = command.trajectory % self._hosts
        if not made.image_bytes or (command.task, host) in self._images:
            self._begin(made, command, made.spec.reset_s, made.spec.reset_outcome, self._ready)
            return
        made.order = command.id
        waiting = self._pulling.setdefault((command.task, host), [])
        waiting.append((made, command))
        self._clock.after(command.timeout_s, self._timed_out, (made, command))
        if len(waiting) == 1:
            self._registry.transfer(made.image_bytes, partial(self._pulled, command.task, host))

    def _pulled(self, task: str, host: int) -> None:
        self._images.add((task, host))
        for made, command in self._pulling.pop((task, host)):
            if made.order == command.id:
                self._begin(made, command, made.spec.reset_s, made.spec.reset_outcome, self._ready)

    def step(self, command: StepEnvironment) -> None:
        """Act."""
        made = self._made[command.trajectory]
        spec, turn = made.spec, command.turn
        outcome = StepOutcome.OK if spec.env_outcome is None else spec.env_outcome[turn]
        self._begin(made, command, spec.env_s[turn], outcome, self._stepped)

    def close(self, command: CloseEnvironment) -> None:
        """Stop whatever it does."""
        made = self._made.pop(command.trajectory)
        made.order = None
        self._demand -= made.busy_cores
        self._count_slots(-1)
        self._report(EnvironmentClosed(command_id=command.id))

    # Work

    def _begin(
        self,
        made: _Environment,
        command: Order,
        work_s: float,
        outcome: StepOutcome,
        then: Callable[[Any], None],
    ) -> None:
        cores = made.busy_cores = made.cores
        self._demand = demand = self._demand + cores
        duration_s = work_s if demand <= self._cores else step_s(work_s, demand, self._cores)
        if outcome is StepOutcome.TIMEOUT:
            # The environment's own session gives up after the recorded wait, if the command does not before.
            duration_s, then = min(work_s, command.timeout_s), self._timed_out
        elif duration_s > command.timeout_s:
            duration_s, then = command.timeout_s, self._timed_out
        elif outcome is StepOutcome.FAILED:
            then = self._failed
        self.busy_core_s += cores * (work_s if work_s < duration_s else duration_s)
        made.order = command.id
        self._clock.after(duration_s, then, (made, command))

    def _is_over(self, made: _Environment, command: Order) -> bool:
        """Whether the order is still wanted; it then stops being at work."""
        if made.order != command.id:
            return False
        made.order = None
        self._demand -= made.busy_cores
        made.busy_cores = 0.0
        return True

    def _stepped(self, about: tuple[_Environment, StepEnvironment]) -> None:
        made, command = about
        if not self._is_over(made, command):
            return
        spec = made.spec
        following = command.turn + 1
        done = following >= len(spec.output_tokens)
        self._report(
            EnvironmentStepped(
                command_id=command.id,
                observation_tokens=0 if done else spec.new_tokens[following],
                kept_tokens=None if done or spec.kept_tokens is None else spec.kept_tokens[following],
                done=done,
            )
        )

    def _ready(self, about: tuple[_Environment, ResetEnvironment]) -> None:
        made, command = about
        if self._is_over(made, command):
            spec = made.spec
            self._report(
                EnvironmentReady(
                    command_id=command.id,
                    prompt_tokens=spec.prompt_tokens + spec.new_tokens[0],
                    shared_tokens=spec.prompt_tokens,
                )
            )

    def _failed(self, about: tuple[_Environment, Order]) -> None:
        made, command = about
        if self._is_over(made, command):
            self._report(EnvironmentFailed(command_id=command.id, cause=Cause.ERROR))

    def _timed_out(self, about: tuple[_Environment, Order]) -> None:
        made, command = about
        if self._is_over(made, command):
            self._report(EnvironmentFailed(command_id=command.id, cause=Cause.TIMEOUT))

    def _count_slots(self, change: int) -> None:
        now = self._clock.now
        self.slots_s += self._slots * (now - self._slots_since_s)
        self._slots_since_s = now
        self._slots += change
