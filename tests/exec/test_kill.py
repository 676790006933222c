"""kill -9 of the driver's process, ten times in one run."""

import multiprocessing
import random
import time
from functools import partial
from pathlib import Path

import pytest

from rollart.domain.job import Faults
from rollart.exec import journal
from rollart.exec.clocks import LogicalClock, WallClock
from rollart.exec.execute import Crew, execute
from rollart.exec.fake.workers import FakeWorkers
from rollart.exec.ports import WorkerFactory
from rollart.exec.saved_run import SavedRun
from tests.exec.runs import toy_models
from tests.exec.test_faults import Case, case
from tests.exec.test_resume import assert_whole
from tests.sim.runs import Finished, Records

SPEED = 20.0
KILLS = 10
STEPS = 40


def tried() -> Case:
    """A run with faults of its own, long enough to be killed often."""
    return case(1, Faults(trainer_mtbf_s=60.0, trainer_restart_s=1.0, reward_failed=0.1), trouble=0.02, steps=STEPS)


def crew(made: Case, clock: type[LogicalClock] | partial[WallClock]) -> Crew:
    models = toy_models(made.job, made.workload)

    def make_workers(of: LogicalClock | WallClock) -> WorkerFactory:
        return partial(FakeWorkers, models, of)

    return Crew(make_clock=clock, make_workers=make_workers)


def live(folder: Path, resume: bool) -> None:
    """The life of one driver, in a process of its own."""
    journal.RECORDS_AT_MOST = 10
    made = tried()
    execute(made.job, crew(made, partial(WallClock, SPEED)), saved=SavedRun(folder), resume=resume)


@pytest.mark.slow
def test_a_driver_that_is_killed_ten_times_loses_nothing(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.exec.test_kill"])
    luck = random.Random(0)
    saved = SavedRun(tmp_path / "kept")
    killed = 0
    while killed < KILLS:
        before = saved.journal_path.stat().st_size if saved.exists else 0
        process = context.Process(target=live, args=(saved.folder, before > 0))
        process.start()
        while process.is_alive() and (not saved.exists or saved.journal_path.stat().st_size <= before):
            time.sleep(0.01)
        time.sleep(luck.uniform(0.0, 0.3))
        assert process.is_alive(), "the run was over before it was killed often enough"
        process.kill()
        process.join()
        killed += 1
    made, records = tried(), Records()
    done = execute(made.job, crew(made, LogicalClock), saved=saved, resume=True, sinks=(records,))
    finished = Finished(header=done.header, records=records.records, statistics=done.statistics, simulation=None)
    assert_whole(made, finished)
