"""RollArt's own run logs: what a run has seen is the next simulation's input.

Every attempt at a trajectory is one of the trace. Times are those of the driver, from an order to its answer: the
waiting for a core or for a function is in them. Whatever a simulation wrote counts as drawn, not as measured.

Attempts that the run itself cut short (surplus, stale, the end of the run) do not say how they would have ended, and
are left out, as are those that were never scored. Policies that cut the slowest short so leave a trace that is faster
than its tasks are: `left_out` says how many they were.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import FormatReader, RecordReader
from rollart.workload.importers.records import Record
from rollart.workload.importers.run_log_attempts import Attempts
from rollart.workload.importers.sample import Sample

_COLUMNS = ("seq", "time_s", "record", "kind", "cause_seq")


class RunLogReader(FormatReader):
    """Reads `runlog.parquet`; trajectories of one group of the run are a group."""

    format: ClassVar[str] = "rollart"
    about: ClassVar[str] = "a run log of RollArt (runlog.parquet), or the folder of a run"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The columns that every record has."""
        return sample.columns.issuperset(_COLUMNS)

    def records(self, _path: Path) -> Iterator[Record]:
        """None: what is in a run log has its meaning by what came before it."""
        return iter(())

    def open(self, path: Path) -> RecordReader:
        """A reader that gives everything at the end; several runs are told apart by their folders."""
        several = sum(file.suffix == path.suffix for file in self.job.files) > 1
        return _RunLog(path, f"{path.parent}, " if several else "", self)


class _RunLog:
    def __init__(self, path: Path, run: str, reader: RunLogReader) -> None:
        self._path = path
        self._run = run
        self._reader = reader

    def read(self, _record: bytes) -> Iterable[Episode]:
        return ()

    def finish(self) -> Iterable[Episode]:
        # Parquet takes longer to load than most recordings take to read.
        from rollart.runlog.reader import read_header, records

        attempts = Attempts(run=self._run, simulated=read_header(self._path).driver == "sim")
        for _, time_s, record in records(self._path):
            yield from attempts.take(time_s, record)
        yield from attempts.rest()
        self._reader.left_out += attempts.left_out
