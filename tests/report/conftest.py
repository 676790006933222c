from collections.abc import Iterator

import pytest

from rollart.runlog.header import RunHeader
from rollart.runlog.reducer import Reducer
from rollart.runlog.schema import Record
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import RunLogWriter
from tests.runlog.scripts import Collector
from tests.runlog.toyrun import ToyRun, header


class Toy:
    """A small run: its header, statistics and records."""

    def __init__(self, *, steps: int = 4, seed: int = 0) -> None:
        self.header: RunHeader = header(steps, seed)
        self._windows = Collector()
        reducer = Reducer(self.header)
        with RunLogWriter(None, self.header, [reducer, self._windows]) as writer:
            ToyRun(writer, steps=steps, seed=seed, lose_engine_at_s=9.0).play()
        self.statistics: RunStatistics = reducer.statistics()

    def records(self) -> Iterator[tuple[int, float, Record]]:
        for window in self._windows.windows:
            yield from window.in_order()


@pytest.fixture(scope="package")
def toy() -> Toy:
    return Toy()


@pytest.fixture
def nothing() -> RunStatistics:
    """The statistics of a run in which nothing has happened yet."""
    return Reducer(header()).statistics()
