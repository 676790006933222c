"""Reward workers: functions that start cold and scale out, a fixed number of local workers, or a judge engine.

A call that waits or starts longer than its time-out fails at the time-out, as one that works too long does.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Protocol

from rollart.domain.cluster import Serverless
from rollart.domain.commands import ScoreTrajectory
from rollart.domain.events import Event, RewardFailed, TrajectoryScored
from rollart.domain.task import RewardKind, Task
from rollart.domain.trajectory import Cause
from rollart.modelled.clock import Clock
from rollart.modelled.episodes import Episodes
from rollart.modelled.faults import RewardAnswer, RewardFaults
from rollart.workload.trajectory import TrajectorySpec


class Judge(Protocol):
    """Scores a trajectory on an engine."""

    def judge(self, command: ScoreTrajectory, task: Task, spec: TrajectorySpec) -> None:
        """Generate the judgement, then report the score."""
        ...


class Functions:
    """A serverless service: at most `max_concurrency` instances, new ones at a bounded rate, idle ones kept warm."""

    def __init__(self, service: Serverless, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._warm: list[float] = []
        """When each idle instance became idle; the last used is used first."""
        self._instances = 0
        self._next_start_s = 0.0
        self._waiting: deque[Callable[[float], None]] = deque()
        self.billed_s = 0.0
        self.cold_starts = 0

    def call(self, begin: Callable[[float], None]) -> None:
        """Call `begin(start_delay_s)` as soon as an instance can be had."""
        if self._instances < self._service.max_concurrency:
            self._instances += 1
            begin(self._start_delay_s())
        else:
            self._waiting.append(begin)

    def _start_delay_s(self) -> float:
        now = self._clock.now
        if self._warm and now - self._warm[-1] <= self._service.keep_alive_s:
            self._warm.pop()
            return 0.0
        self._warm.clear()
        self.cold_starts += 1
        start_s = max(now, self._next_start_s)
        self._next_start_s = start_s + 1.0 / self._service.scale_out_per_s
        return start_s - now + self._service.cold_start_s

    def done(self, billed_s: float) -> None:
        """An instance has finished a call that is billed for `billed_s`."""
        self.billed_s += billed_s
        if self._waiting:
            self._waiting.popleft()(0.0)
        else:
            self._instances -= 1
            self._warm.append(self._clock.now)


class LocalWorkers:
    """A fixed number of workers, first come first served."""

    def __init__(self, workers: int) -> None:
        self._free = workers
        self._waiting: deque[Callable[[float], None]] = deque()

    def call(self, begin: Callable[[float], None]) -> None:
        """Call `begin(0)` as soon as a worker is free."""
        if self._free:
            self._free -= 1
            begin(0.0)
        else:
            self._waiting.append(begin)

    def done(self, billed_s: float) -> None:  # noqa: ARG002 - local workers are not billed by use
        """A worker is free."""
        if self._waiting:
            self._waiting.popleft()(0.0)
        else:
            self._free += 1


class Rewards:
    """Scores trajectories by the needs of their task."""

    def __init__(
        self,
        service: Serverless,
        tasks: Mapping[str, Task],
        episodes: Episodes,
        clock: Clock,
        report: Callable[[Event], None],
        faults: RewardFaults | None = None,
    ) -> None:
        self._clock = clock
        self._report = report
        self._faults = faults
        self._episodes = episodes
        self._tasks = tasks
        self.functions = Functions(service, clock)
        self._workers: dict[str, Functions | LocalWorkers] = {
            name: self.functions if task.reward.kind is RewardKind.SERVERLESS else LocalWorkers(task.reward.workers)
            for name, task in tasks.items()
        }
        self.judge: Judge | None = None
        self.busy_s = 0.0

    def score(self, command: ScoreTrajectory) -> None:
        """Score on whatever the task asks for."""
        spec = self._episodes.specs[command.trajectory]
        task = self._tasks[spec.task]
        if task.reward.kind is RewardKind.ENGINE and self.judge is not None:
            self.judge.judge(command, task, spec)
            return
        scoring = _Scoring(command, spec, self._clock.now, self._workers[spec.task])
        if self._faults is not None:
            scoring.answer = self._faults.answer(command, spec)
        scoring.workers.call(partial(self._begin, scoring))
        if not scoring.begun:
            self._clock.after(command.timeout_s, self._expired, scoring)

    def _begin(self, scoring: "_Scoring", delay_s: float) -> None:
        if scoring.expired:
            # Through the calendar: a queue of expired calls would empty itself by recursion.
            self._clock.after(0.0, self._pass_on, scoring)
            return
        scoring.begun = True
        left_s = max(0.0, scoring.command.timeout_s - (self._clock.now - scoring.asked_s))
        scoring.work_s = min(scoring.needed_s, max(0.0, left_s - delay_s))
        self.busy_s += scoring.work_s
        self._clock.after(min(delay_s + scoring.work_s, left_s), self._over, scoring)

    def _pass_on(self, scoring: "_Scoring") -> None:
        scoring.workers.done(0.0)

    def _expired(self, scoring: "_Scoring") -> None:
        if not scoring.begun:
            scoring.expired = True
            self._report(RewardFailed(command_id=scoring.command.id, cause=Cause.TIMEOUT))

    def _over(self, scoring: "_Scoring") -> None:
        scoring.workers.done(scoring.work_s)
        command_id = scoring.command.id
        if scoring.work_s < scoring.needed_s:
            self._report(RewardFailed(command_id=command_id, cause=Cause.TIMEOUT))
        elif scoring.answer is RewardAnswer.ERROR:
            self._report(RewardFailed(command_id=command_id, cause=Cause.ERROR))
        else:
            reward = inf if scoring.answer is RewardAnswer.GARBAGE else scoring.spec.reward
            self._report(TrajectoryScored(command_id=command_id, reward=reward))


class _Scoring:
    """A call on its way through a worker."""

    __slots__ = ("answer", "asked_s", "begun", "command", "expired", "spec", "work_s", "workers")

    def __init__(
        self, command: ScoreTrajectory, spec: TrajectorySpec, asked_s: float, workers: Functions | LocalWorkers
    ) -> None:
        self.command = command
        self.spec = spec
        self.asked_s = asked_s
        self.workers = workers
        self.begun = False
        self.expired = False
        """It failed while it waited for a worker."""
        self.work_s = 0.0
        self.answer = RewardAnswer.GOOD

    @property
    def needed_s(self) -> float:
        """Seconds of work until it answers."""
        return inf if self.answer is RewardAnswer.LATE else self.spec.reward_s
