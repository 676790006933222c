"""Rewards from a judge model on engines of its own."""

from collections.abc import Callable
from functools import partial

from rollart.domain.commands import ScoreTrajectory
from rollart.domain.events import Event, RewardFailed, TrajectoryScored
from rollart.domain.task import Task
from rollart.domain.trajectory import Cause
from rollart.modelled.clock import Clock
from rollart.modelled.engine_worker import EngineWorker
from rollart.serving.request import Completion, Request
from rollart.workload.trajectory import TrajectorySpec


class EngineJudge:
    """Reads a whole trajectory and writes a judgement, on the least busy engine of the task's group."""

    def __init__(self, groups: dict[str, list[EngineWorker]], clock: Clock, report: Callable[[Event], None]) -> None:
        self._groups = groups
        self._clock = clock
        self._report = report
        self._open: dict[int, EngineWorker] = {}
        """Command -> the engine that judges."""

    def judge(self, command: ScoreTrajectory, task: Task, spec: TrajectorySpec) -> None:
        """Generate the judgement; the score fails when no engine of the group is up."""
        assert task.reward.engine_group is not None
        up = [worker for worker in self._groups[task.reward.engine_group] if worker.up]
        if not up:
            self._report(RewardFailed(command_id=command.id, cause=Cause.ERROR))
            return
        worker = min(up, key=lambda one: (one.engine.running + one.engine.waiting, one.index))
        capacity = worker.engine.config.kv_capacity_tokens - task.reward.judge_tokens
        tokens = spec.prompt_tokens + sum(spec.new_tokens) + sum(spec.output_tokens)
        request = Request(
            request_id=command.id,
            chain=command.trajectory,
            context_tokens=max(1, min(tokens, capacity)),
            output_tokens=task.reward.judge_tokens,
        )
        self._open[command.id] = worker
        worker.submit(request, partial(self._judged, spec.reward))
        self._clock.after(command.timeout_s, self._timed_out, command.id)

    def _judged(self, reward: float, completion: Completion) -> None:
        command_id = completion.request_id
        del self._open[command_id]
        self._report(TrajectoryScored(command_id=command_id, reward=reward))

    def _timed_out(self, request_id: int) -> None:
        worker = self._open.get(request_id)
        if worker is None:
            return
        # What completes at this very moment is judged in time.
        worker.abort(request_id)
        if self._open.pop(request_id, None) is not None:
            self._report(RewardFailed(command_id=request_id, cause=Cause.TIMEOUT))

    def lost(self, commands: list[int]) -> None:
        """Judgements that died with their engine."""
        for command_id in commands:
            self._open.pop(command_id, None)
            self._report(RewardFailed(command_id=command_id, cause=Cause.ERROR))
