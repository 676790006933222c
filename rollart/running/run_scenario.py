"""A scenario, run by the executor, into the run directory that a simulation also writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollart.domain.errors import InputError
from rollart.domain.job import Job
from rollart.exec.execute import Crew, Execution, execute
from rollart.exec.saved_run import SavedRun
from rollart.report.figures import draw_rewards
from rollart.report.run_directory import write_results
from rollart.report.staging import staged
from rollart.report.summary import summarize
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import FILE_NAME
from rollart.running.fakes import FakeTime, fake_crew
from rollart.running.reals import LEARNING_FILE, keep_checkpoints, learning_curve, real_crew
from rollart.scenario.scenario import Scenario

KEPT = ".part-run"
"""Folder in the run directory of what a run needs to be resumed; gone when the run is complete."""


def run_scenario(
    scenario: Scenario,
    *,
    out: Path,
    fake: FakeTime | None,
    code_version: str = "",
    progress: Callable[[int, int], None] | None = None,
    tell: Callable[[str], None] | None = None,
    address: str | None = None,
    resume: bool = False,
) -> tuple[dict[str, Any], RunStatistics]:
    """Run on fake workers, or on real ones where `fake` is None; the summary and the statistics.

    `tell` is given a line for every training step of real workers, and for what fails of them.
    `address`: of a Ray cluster for real workers; None: one is started on this machine. `resume`: go on with the run
    that was interrupted in `out`. While a run is under way it is kept in a hidden folder there.

    Raises ScenarioError, CapacityError, TraceError, OutputError, StartError, WorkerError, StuckError,
    RunLogError, or RunInterrupted.
    """
    job = scenario.job()

    def on_step(version: int, _: float) -> None:
        if progress is not None:
            progress(version, job.steps)

    saved = SavedRun(out / KEPT)
    if saved.exists and not resume:
        raise InputError(f"{out}: holds a run that was interrupted; go on with --resume, or choose another folder")
    with staged(out) as stage, _crew(scenario, job, fake, stage, address, tell) as crew:
        done = execute(
            job,
            crew,
            log_path=stage / FILE_NAME,
            code_version=code_version,
            on_step=on_step,
            saved=saved,
            resume=resume,
        )
        summary = _summary(done)
        write_results(stage, done.statistics, summary)
        if (stage / LEARNING_FILE).is_file():
            keep_checkpoints(saved.workers_folder, stage)
            title = f"{job.name}, {job.plan.policy.name}: mean reward of what was trained on"
            draw_rewards(stage / "figures" / "rewards.png", title, learning_curve(stage / LEARNING_FILE))
    saved.drop()
    return summary, done.statistics


@contextmanager
def _crew(
    scenario: Scenario,
    job: Job,
    fake: FakeTime | None,
    folder: Path,
    address: str | None,
    tell: Callable[[str], None] | None,
) -> Iterator[Crew]:
    """Who works: the one place where fake and real workers part."""
    if fake is not None:
        yield fake_crew(scenario, job, fake)
        return
    with real_crew(scenario, job, folder, address, tell) as crew:
        yield crew


def _summary(done: Execution) -> dict[str, Any]:
    return summarize(done.statistics, done.use.as_dict()) | dict(done.figures)
