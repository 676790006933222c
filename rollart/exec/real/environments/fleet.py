"""All environments of a run, from the driver's side: processes by task, orders, time-outs, crashes.

Processes are started when they are needed, up to the task's limit; an order beyond that waits for a free place. A
process with an environment that hangs takes no further episodes, and ends when it holds none but hanging ones. An
environment that shares its process with one that crashes fails with it.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rollart.domain.commands import CloseEnvironment, ResetEnvironment, StepEnvironment
from rollart.domain.events import EnvironmentClosed, EnvironmentFailed, EnvironmentReady, EnvironmentStepped, Event
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.failures import Why
from rollart.exec.real.mailbox import Mailbox
from rollart.exec.real.wire import Message
from rollart.modelled.clock import Clock

SWEEP_S = 0.5
"""Time between two looks for orders that are overdue; a time-out is late by at most this."""
CLOSE_S = 30.0
"""Longest time in which a process sets an environment aside that is not at work."""


@dataclass(slots=True, eq=False)
class _Host:
    """A process and the trajectories that have an environment in it."""

    task: TaskExecution
    mailbox: Mailbox | None = None
    held: set[int] = field(default_factory=set)
    hanging: set[int] = field(default_factory=set)

    @property
    def has_room(self) -> bool:
        return not self.hanging and len(self.held) < self.task.environments_per_process


@dataclass(slots=True)
class _Order:
    """An order that is not answered yet."""

    command: ResetEnvironment | StepEnvironment
    due_s: float
    began_s: float


@dataclass(slots=True)
class _Close:
    """A close that its process has not answered yet."""

    host: _Host
    trajectory: int
    due_s: float


class EnvironmentFleet:
    """Carries out ResetEnvironment, StepEnvironment and CloseEnvironment."""

    def __init__(
        self,
        tasks: Mapping[str, TaskExecution],
        start: Callable[[TaskExecution, Callable[[Message], None], Callable[[str], None]], Mailbox],
        episodes: Episodes,
        clock: Clock,
        report: Callable[[Event], None],
        why: Why,
    ) -> None:
        """`start(task, received, lost)` starts a process for a task. `why` is told the reason of every failure."""
        self._tasks = tasks
        self._start = start
        self._episodes = episodes
        self._clock = clock
        self._report = report
        self._why = why
        self._hosts: dict[str, list[_Host]] = {task: [] for task in tasks}
        self._host_of: dict[int, _Host] = {}
        self._orders: dict[int, _Order] = {}
        self._order_of: dict[int, int] = {}
        """Trajectory -> its open order."""
        self._waiting: dict[str, deque[ResetEnvironment]] = {task: deque() for task in tasks}
        self._closing: dict[int, _Close] = {}
        """By the command."""
        self._slots_since_s = 0.0
        self.busy_s = 0.0
        self.slots_s = 0.0
        self.crashes = 0
        clock.after(SWEEP_S, self._sweep, None)

    # Commands

    def reset(self, command: ResetEnvironment) -> None:
        """Begin an episode where there is room."""
        self._episodes.begin(command)
        self._open(command)
        if not self._place(command):
            self._waiting[command.task].append(command)

    def step(self, command: StepEnvironment) -> None:
        """Carry out the turn; an environment whose process has died fails."""
        host = self._host_of.get(command.trajectory)
        self._open(command)
        if host is None or host.mailbox is None:
            self._fail(command.id, Cause.ERROR)
            return
        host.mailbox.post(("step", command.id, command.trajectory, self._episodes[command.trajectory].turn))

    def close(self, command: CloseEnvironment) -> None:
        """Free the place; an environment that is at work is closed when it comes back, or hangs as its order would."""
        self._count_slots()
        trajectory = command.trajectory
        due_s = self._clock.now + CLOSE_S
        order = self._order_of.pop(trajectory, None)
        if order is not None:
            due_s = max(due_s, self._orders.pop(order).due_s)
        host = self._host_of.pop(trajectory, None)
        if host is None or host.mailbox is None:
            # No process holds it: it never had one, or that has died.
            self._clock.after(0.0, self._closed_already, command.id)
            return
        self._closing[command.id] = _Close(host, trajectory, due_s)
        host.mailbox.post(("close", command.id, trajectory))
        if trajectory in host.hanging:
            self._answer_close(command.id)

    def stop(self) -> None:
        """End all processes."""
        for hosts in self._hosts.values():
            for host in hosts:
                if host.mailbox is not None:
                    host.mailbox.kill()
            hosts.clear()

    # Places

    def _open(self, command: ResetEnvironment | StepEnvironment) -> None:
        now = self._clock.now
        self._orders[command.id] = _Order(command, now + command.timeout_s, now)
        self._order_of[command.trajectory] = command.id

    def _place(self, command: ResetEnvironment) -> bool:
        task = self._tasks[command.task]
        hosts = self._hosts[command.task]
        host = next((host for host in hosts if host.has_room), None)
        if host is None:
            if len(hosts) >= task.processes:
                return False
            host = _Host(task)
            host.mailbox = self._start(task, partial(self._received, host), partial(self._lost, host))
            hosts.append(host)
        assert host.mailbox is not None
        self._count_slots()
        host.held.add(command.trajectory)
        self._host_of[command.trajectory] = host
        seed = command.prompt
        host.mailbox.post(("reset", command.id, command.trajectory, seed, command.member))
        return True

    def _place_waiting(self, task: str) -> None:
        waiting = self._waiting[task]
        while waiting:
            if waiting[0].id in self._orders and not self._place(waiting[0]):
                return
            waiting.popleft()

    # Answers

    def _received(self, host: _Host, message: Message) -> None:
        kind, command_id = message[:2]
        if kind == "closed":
            if command_id in self._closing:
                self._answer_close(command_id)
            return
        order = self._orders.get(command_id)
        if order is None:
            return
        if kind == "failed":
            self._host_of.pop(order.command.trajectory, None)
            self._why(_environment_of(host.task), message[2])
            self._tidy(host)
            self._fail(command_id, Cause.ERROR)
            self._place_waiting(host.task.task)
            return
        self.busy_s += message[-1]
        self._forget_order(command_id)
        if kind == "ready":
            self._ready(order.command, message[2])
        else:
            self._stepped(order.command, *message[2:5])

    def _ready(self, command: Any, ids: list[int]) -> None:
        shared = self._episodes.ready(command.trajectory, ids)
        self._report(EnvironmentReady(command_id=command.id, prompt_tokens=len(ids), shared_tokens=shared))

    def _stepped(self, command: Any, ids: list[int], reward: float, done: bool) -> None:
        episode = self._episodes[command.trajectory]
        episode.reward += reward
        episode.observe(ids)
        self._report(
            EnvironmentStepped(command_id=command.id, observation_tokens=len(ids), kept_tokens=None, done=done)
        )

    def _answer_close(self, command_id: int) -> None:
        host = self._closing.pop(command_id).host
        self._tidy(host)
        self._report(EnvironmentClosed(command_id=command_id))
        self._place_waiting(host.task.task)

    def _tidy(self, host: _Host) -> None:
        """An environment has left: free its place, and end a process that holds only what hangs."""
        wanted = {trajectory for trajectory in host.held if self._host_of.get(trajectory) is host}
        host.held = wanted | host.hanging
        if host.hanging and not wanted and host.mailbox is not None:
            self._retire(host)

    def _closed_already(self, command_id: int) -> None:
        self._report(EnvironmentClosed(command_id=command_id))

    def _forget_order(self, command_id: int) -> None:
        order = self._orders.pop(command_id)
        if self._order_of.get(order.command.trajectory) == command_id:
            del self._order_of[order.command.trajectory]

    def _fail(self, command_id: int, cause: Cause) -> None:
        self._forget_order(command_id)
        self._report(EnvironmentFailed(command_id=command_id, cause=cause))

    # Time-outs and crashes

    def _sweep(self, _: None) -> None:
        now = self._clock.now
        for command_id, order in list(self._orders.items()):
            if order.due_s <= now and command_id in self._orders:
                host = self._host_of.get(order.command.trajectory)
                if host is not None:
                    host.hanging.add(order.command.trajectory)
                    self._why(_environment_of(host.task), f"no answer within {order.command.timeout_s:g} s")
                self._fail(command_id, Cause.TIMEOUT)
        for command_id, close in list(self._closing.items()):
            if close.due_s <= now and command_id in self._closing:
                close.host.hanging.add(close.trajectory)
                self._why(_environment_of(close.host.task), "it was given up, and has not come back to be closed")
                self._answer_close(command_id)
        self._clock.after(SWEEP_S, self._sweep, None)

    def _retire(self, host: _Host) -> None:
        """End a process that holds only what hangs."""
        assert host.mailbox is not None
        host.mailbox.kill()
        self._lost(host, "an environment hangs")

    def _lost(self, host: _Host, reason: str) -> None:
        """A process has ended: what it was at work on fails; what waits for a turn fails at its next step."""
        self._why(f"a process of environments of {host.task.task!r}", reason)
        self.crashes += 1
        host.mailbox = None
        self._hosts[host.task.task].remove(host)
        for trajectory in sorted(host.held):
            if self._host_of.get(trajectory) is not host:
                # It hung here, and goes on elsewhere.
                continue
            del self._host_of[trajectory]
            order = self._order_of.get(trajectory)
            if order is not None:
                self._fail(order, Cause.ERROR)
        for command_id in [command for command, close in self._closing.items() if close.host is host]:
            self._answer_close(command_id)
        self._place_waiting(host.task.task)

    def _count_slots(self) -> None:
        now = self._clock.now
        self.slots_s += len(self._host_of) * (now - self._slots_since_s)
        self._slots_since_s = now


def _environment_of(task: TaskExecution) -> str:
    return f"an environment of {task.task!r}"
