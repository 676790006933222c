"""Real workers of a scenario: what must be checked and made before they start."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from rollart.domain.job import Job
from rollart.exec.clocks import WallClock
from rollart.exec.execute import Crew
from rollart.running.executor_part import executor_module
from rollart.scenario.scenario import Scenario
from rollart.sim import simulate

LEARNING_FILE = "learning.jsonl"
"""In a run directory: one line for each training step."""
PREDICTED_STEPS = 12
"""Steps that are simulated before the run."""


@contextmanager
def real_crew(
    scenario: Scenario, job: Job, folder: Path, address: str | None, tell: Callable[[str], None] | None = None
) -> Iterator[Crew]:
    """Real workers that write below `folder`; all that can be found wrong is found before anything starts.

    `tell` is given a line for every training step, and for failures.

    Raises ScenarioError, CapacityError, or InputError where the executor's packages are missing.
    """
    settings = scenario.execution()
    assembly = executor_module("rollart.exec.real.assembly")
    predicted_s = predicted_step_s(scenario, job)
    with assembly.connected(job, settings, folder, address, predicted_s, tell) as make_workers:
        yield Crew(make_clock=partial(WallClock, 1.0), make_workers=lambda _: make_workers)


def predicted_step_s(scenario: Scenario, job: Job) -> float:
    """Mean step time by a simulation of the first steps."""
    short = replace(job, steps=min(job.steps, PREDICTED_STEPS), warmup_steps=min(job.warmup_steps, PREDICTED_STEPS - 1))
    return fmean(step.duration_s for step in simulate(short, scenario.workload()).statistics.counted_steps)


def learning_curve(path: Path) -> list[dict[str, float]]:
    """Mean reward by task of every step, in order; of a step that was made again the last time counts."""
    steps = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [rewards for _, rewards in sorted({step["step"]: step["rewards"] for step in steps}.items())]


def keep_checkpoints(workers: Path, folder: Path) -> None:
    """Move the trainer's last checkpoints out of what is dropped when a run is complete."""
    if (workers / "checkpoints").is_dir():
        shutil.move(workers / "checkpoints", folder / "checkpoints")
