"""Evaluates trials: remembered ones from disk, the others simulated by worker processes.

Outcomes do not depend on the number of workers: each trial has a seed of its own.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from rollart.domain.errors import StuckError
from rollart.planning.fingerprint import trial_name, workload_name
from rollart.planning.memory import Memory
from rollart.planning.simulation import simulate_trial
from rollart.scenario.scenario import Scenario
from rollart.sched.placement.trial import Outcome, Trial

Progress = Callable[[int, int], None]
"""Told the trials that are done and all that were asked for so far."""


class Workers:
    """Processes that simulate; with one worker everything happens in this process. They start with the first trial."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._others: list[BaseProcess] = []
        """Child processes that were there before ours."""

    def outcomes(self, scenario: Scenario, trials: Mapping[str, Trial]) -> Iterator[tuple[str, Outcome]]:
        """Simulate trials that have names; each outcome as soon as it is there. StuckError where a process dies."""
        if self._count == 1 or len(trials) == 1:
            for name, trial in trials.items():
                yield name, simulate_trial(scenario, trial)
            return
        if self._pool is None:
            # A forked process would inherit locks that threads of the solver may hold.
            self._others = list(multiprocessing.active_children())
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._count, mp_context=context, initializer=_start_worker)
        running = {self._pool.submit(simulate_trial, scenario, trial): name for name, trial in trials.items()}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BrokenProcessPool as error:
            raise StuckError(
                "plan: a worker process ended in the middle of a simulation, perhaps for want of memory; give fewer "
                "--workers"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        if kind is not None:
            # What is under way is of no use any more, and may take minutes.
            for child in multiprocessing.active_children():
                if child not in self._others:
                    child.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Ctrl-C is for the process that waits; a worker ends with it, also where it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


class Evaluator:
    """The `Evaluate` of a scenario's plans."""

    def __init__(
        self, scenario: Scenario, workers: Workers, memory: Memory | None = None, progress: Progress | None = None
    ) -> None:
        self._scenario = scenario
        self._workers = workers
        self._memory = memory
        self._progress = progress
        self._workload = workload_name(scenario)
        self._done = 0
        self.asked = 0
        """Trials that were asked for."""
        self.simulated = 0
        """Trials that were simulated, not remembered."""

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Outcomes in the order of the trials."""
        names = [trial_name(trial, self._workload) for trial in trials]
        self.asked += len(trials)
        outcomes: dict[str, Outcome] = {}
        open_trials: dict[str, Trial] = {}
        for name, trial in zip(names, trials, strict=True):
            known = self._memory.get(name) if self._memory is not None else None
            if known is None:
                open_trials[name] = trial
            else:
                outcomes[name] = known
        self._step(len(trials) - len(open_trials))
        self._simulate(open_trials, outcomes)
        return [outcomes[name] for name in names]

    def _simulate(self, open_trials: dict[str, Trial], outcomes: dict[str, Outcome]) -> None:
        for name, outcome in self._workers.outcomes(self._scenario, open_trials):
            outcomes[name] = outcome
            if self._memory is not None:
                self._memory.put(name, outcome)
            self.simulated += 1
            self._step(1)

    def _step(self, trials: int) -> None:
        self._done += trials
        if self._progress is not None:
            self._progress(self._done, self.asked)
