"""Reward workers: functions that start cold and scale out, a fixed number of local workers, or a judge engine."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from rollart.domain.cluster import Serverless
from rollart.domain.commands import ScoreTrajectory
from rollart.domain.events import Event, RewardFailed, TrajectoryScored
from rollart.domain.task import RewardKind, Task
from rollart.domain.trajectory import Cause
from rollart.sim.clock import Call, Clock
from rollart.sim.episodes import Episodes
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
    ) -> None:
        self._clock = clock
        self._report = report
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
        workers = self._workers[spec.task]
        asked_s = self._clock.now

        def begin(delay_s: float) -> None:
            waited_s = self._clock.now - asked_s + delay_s
            work_s = min(spec.reward_s, max(0.0, command.timeout_s - waited_s))
            self.busy_s += work_s
            late = work_s < spec.reward_s
            self._clock.after(delay_s + work_s, self._over, (command, spec.reward, late, workers, work_s))

        workers.call(begin)

    def _over(self, call: "Call[Scored]") -> None:
        command, reward, late, workers, billed_s = call.payload
        workers.done(billed_s)
        if late:
            self._report(RewardFailed(command_id=command.id, cause=Cause.TIMEOUT))
        else:
            self._report(TrajectoryScored(command_id=command.id, reward=reward))


Scored = tuple[ScoreTrajectory, float, bool, "Functions | LocalWorkers", float]
"""Command, reward, whether it came too late, who scored, and seconds of work."""
