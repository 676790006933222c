"""Runs whose driver dies at a chosen event, again and again, until they are done."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from rollart.domain.events import Event
from rollart.exec.clocks import LogicalClock
from rollart.exec.execute import Crew, Execution, execute
from rollart.exec.fake.host import Models
from rollart.exec.fake.workers import FakeWorkers
from rollart.exec.journal import Journal
from rollart.exec.ports import Desk, WorkerFactory
from rollart.exec.saved_run import SavedRun
from tests.sim.runs import Finished, Records


class Killed(Exception):
    """The driver is gone."""


def dying_crew(models: Models, life: int | None) -> Crew:
    """Fake workers whose driver dies after `life` events; None: never."""

    def make_workers(clock: LogicalClock) -> WorkerFactory:
        return lambda desk: FakeWorkers(models, clock, _dying(desk, life))

    return Crew(make_clock=LogicalClock, make_workers=make_workers)


def _dying(desk: Desk, life: int | None) -> Desk:
    left = life

    def report(event: Event) -> None:
        nonlocal left
        desk.report(event)
        if left is not None:
            left -= 1
            if left <= 0:
                desk.fail(Killed())

    return replace(desk, report=report)


def tear(journal: Path, luck: random.Random) -> None:
    """Leave the beginning of a block at the end, as a driver that dies while it writes does."""
    with journal.open("ab") as file:
        file.write(luck.randbytes(luck.randint(0, 40)))


@contextmanager
def sudden_death() -> Iterator[None]:
    """What waits for the disk when the driver dies is lost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "close", lambda journal: journal._file.close())
        yield


def run_through_deaths(
    models: Models, folder: Path, lives: Sequence[int], torn: Callable[[Path], None] = lambda _: None
) -> tuple[Execution, Finished]:
    """Die after each of `lives` events, `torn(journal)` after each death, then run to the end."""
    saved = SavedRun(folder)
    resume = False
    for life in (*lives, None):
        records = Records()
        try:
            with sudden_death() if life is not None else nullcontext():
                done = execute(models.job, dying_crew(models, life), saved=saved, resume=resume, sinks=(records,))
        except Killed:
            torn(saved.journal_path)
            resume = True
            continue
        finished = Finished(header=done.header, records=records.records, statistics=done.statistics, simulation=None)
        return done, finished
    raise AssertionError("unreachable")
