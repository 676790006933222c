"""What goes wrong beside the environments: engines and trainers die and come back, reward calls fail.

Engines die at a rate, or when a recorded preemption says so.
"""

import random
from collections.abc import Callable
from enum import Enum

from rollart.domain.commands import RestartEngine, RestartTrainer, ScoreTrajectory
from rollart.domain.events import EngineStarted, Event
from rollart.domain.job import Faults
from rollart.modelled.clock import Clock
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.trainer import Trainer
from rollart.workload.trajectory import TrajectorySpec


class EngineFaults:
    """Kills engines and starts them again."""

    def __init__(
        self,
        faults: Faults,
        seed: int,
        workers: list[EngineWorker],
        clock: Clock,
        lose: Callable[[int], None],
        report: Callable[[Event], None],
    ) -> None:
        self._faults = faults
        self._seed = seed
        self._workers = workers
        self._clock = clock
        self._lose = lose
        self._report = report
        self._away_until_s = [0.0] * len(workers)
        for worker in workers:
            self._draw_failure(worker)
        for preemption in faults.preemptions:
            # A run that is resumed has the earlier ones behind it.
            delay_s = preemption.time_s - clock.now
            if preemption.engine < len(workers) and delay_s >= 0.0:
                clock.after(delay_s, self._preempt, (preemption.engine, preemption.away_s))

    def _draw_failure(self, worker: EngineWorker) -> None:
        """Time to the next failure of this incarnation, exponential, keyed by engine and incarnation."""
        if self._faults.engine_mtbf_s is not None:
            luck = random.Random(f"{self._seed}/engine/{worker.index}/{worker.incarnation}")
            delay_s = luck.expovariate(1.0 / self._faults.engine_mtbf_s)
            self._clock.after(delay_s, self._fail, (worker.index, worker.incarnation))

    def _fail(self, about: tuple[int, int]) -> None:
        index, incarnation = about
        worker = self._workers[index]
        if worker.up and worker.incarnation == incarnation:
            self._lose(index)

    def _preempt(self, about: tuple[int, float]) -> None:
        index, away_s = about
        self._away_until_s[index] = max(self._away_until_s[index], self._clock.now + away_s)
        if self._workers[index].up:
            self._lose(index)

    def restart(self, command: RestartEngine) -> None:
        """Start an incarnation, as soon as its devices are there."""
        away_s = max(0.0, self._away_until_s[command.engine] - self._clock.now)
        self._clock.after(away_s + self._faults.engine_restart_s, self._started, command)

    def _started(self, command: RestartEngine) -> None:
        if self._away_until_s[command.engine] > self._clock.now:
            self.restart(command)
            return
        worker = self._workers[command.engine]
        worker.start(command.incarnation)
        self._draw_failure(worker)
        self._report(EngineStarted(command_id=command.id))


class TrainerFaults:
    """Kills the trainer and starts it again."""

    def __init__(self, faults: Faults, seed: int, trainer: Trainer, clock: Clock, lose: Callable[[], None]) -> None:
        self._faults = faults
        self._seed = seed
        self._trainer = trainer
        self._clock = clock
        self._lose = lose
        self._draw_failure()

    def _draw_failure(self) -> None:
        """Time to the next failure of this incarnation, exponential, keyed by the incarnation."""
        if self._faults.trainer_mtbf_s is not None:
            luck = random.Random(f"{self._seed}/trainer/{self._trainer.incarnation}")
            delay_s = luck.expovariate(1.0 / self._faults.trainer_mtbf_s)
            self._clock.after(delay_s, self._fail, self._trainer.incarnation)

    def _fail(self, incarnation: int) -> None:
        if self._trainer.up and self._trainer.incarnation == incarnation:
            self._lose()

    def restart(self, command: RestartTrainer) -> None:
        """Start an incarnation from its checkpoint."""
        self._clock.after(self._faults.trainer_restart_s, self._started, command)

    def _started(self, command: RestartTrainer) -> None:
        self._trainer.start(command)
        self._draw_failure()


class RewardAnswer(Enum):
    """How a reward call answers."""

    GOOD = "good"
    ERROR = "error"
    LATE = "late"
    """Not in time."""
    GARBAGE = "garbage"
    """With what is no finite number."""


class RewardFaults:
    """Draws how each reward call answers, keyed by the trajectory's drawing and the attempt to score it."""

    def __init__(self, faults: Faults, seed: int) -> None:
        self._seed = seed
        self._limits = (
            (faults.reward_failed, RewardAnswer.ERROR),
            (faults.reward_failed + faults.reward_late, RewardAnswer.LATE),
            (faults.reward_failed + faults.reward_late + faults.reward_garbage, RewardAnswer.GARBAGE),
        )
        self._never = self._limits[-1][0] <= 0.0

    def answer(self, command: ScoreTrajectory, spec: TrajectorySpec) -> RewardAnswer:
        """How this call answers."""
        if self._never:
            return RewardAnswer.GOOD
        key = f"{self._seed}/reward/{spec.task}/{spec.prompt}/{spec.member}/{spec.attempt}/{command.attempt}"
        drawn = random.Random(key).random()
        return next((answer for limit, answer in self._limits if drawn < limit), RewardAnswer.GOOD)
