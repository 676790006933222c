"""Engines that die: at a rate, or when a recorded preemption says so; and how long a restart takes."""

import random
from collections.abc import Callable

from rollart.domain.commands import RestartEngine
from rollart.domain.events import EngineStarted, Event
from rollart.domain.job import Faults
from rollart.modelled.clock import Call, Clock
from rollart.modelled.engine_worker import EngineWorker


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
            if preemption.engine < len(workers):
                clock.after(preemption.time_s, self._preempt, (preemption.engine, preemption.away_s))

    def _draw_failure(self, worker: EngineWorker) -> None:
        """Time to the next failure of this incarnation, exponential, keyed by engine and incarnation."""
        if self._faults.engine_mtbf_s is not None:
            luck = random.Random(f"{self._seed}/engine/{worker.index}/{worker.incarnation}")
            delay_s = luck.expovariate(1.0 / self._faults.engine_mtbf_s)
            self._clock.after(delay_s, self._fail, (worker.index, worker.incarnation))

    def _fail(self, call: Call[tuple[int, int]]) -> None:
        index, incarnation = call.payload
        worker = self._workers[index]
        if worker.up and worker.incarnation == incarnation:
            self._lose(index)

    def _preempt(self, call: Call[tuple[int, float]]) -> None:
        index, away_s = call.payload
        self._away_until_s[index] = max(self._away_until_s[index], self._clock.now + away_s)
        if self._workers[index].up:
            self._lose(index)

    def restart(self, command: RestartEngine) -> None:
        """Start an incarnation, as soon as its devices are there."""
        away_s = max(0.0, self._away_until_s[command.engine] - self._clock.now)
        self._clock.after(away_s + self._faults.engine_restart_s, self._started, command)

    def _started(self, call: Call[RestartEngine]) -> None:
        command = call.payload
        if self._away_until_s[command.engine] > self._clock.now:
            self.restart(command)
            return
        worker = self._workers[command.engine]
        worker.start(command.incarnation)
        self._draw_failure(worker)
        self._report(EngineStarted(command_id=command.id))
