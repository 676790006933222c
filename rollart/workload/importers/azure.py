"""Azure's LLM inference traces: a CSV line for each request, without anything that ties requests together.

Every request is a trajectory of one turn and a group of its own. Its time of arrival has no place in a trace.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import ClassVar

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import FormatReader, ImportJob, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import TraceTurn

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


class AzureReader(FormatReader):
    """Reads the CSV of 2023 and 2024; the file's name tells "code" from "conv"."""

    format: ClassVar[str] = "azure"
    about: ClassVar[str] = "an Azure LLM inference trace (CSV with TIMESTAMP, ContextTokens, GeneratedTokens)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The header."""
        return set(sample.first_line.split(",")) >= set(COLUMNS)

    def __init__(self, job: ImportJob) -> None:
        super().__init__(job)
        self._numbers = count()

    def open(self, path: Path) -> RecordReader:
        """Every line is a trajectory."""
        kind = next((kind for kind in ("code", "conv") if kind in path.name.lower()), "requests")
        return _Requests(f"azure-{kind}", self._numbers)


class _Requests:
    def __init__(self, task: str, numbers: Iterator[int]) -> None:
        self._task = task
        self._numbers = numbers
        self._columns: list[str] = []

    def read(self, record: bytes) -> Iterable[Episode]:
        cells = record.decode().strip().split(",")
        if not self._columns:
            missing = [column for column in COLUMNS if column not in cells]
            if missing:
                raise ValueError(f"the header has no {', '.join(missing)}; must have it")
            self._columns = cells
            return
        if len(cells) != len(self._columns):
            raise ValueError(f"has {len(cells)} cells; must have {len(self._columns)}, as the header")
        row = dict(zip(self._columns, cells, strict=True))
        context_tokens, output_tokens = (_tokens(row, column) for column in COLUMNS[1:])
        yield Episode(
            task=self._task,
            group=f"request-{next(self._numbers)}",
            alone=True,
            prompt_tokens=context_tokens,
            turns=(TraceTurn(output_tokens=output_tokens),),
            tokens="counted",
        )

    def finish(self) -> Iterable[Episode]:
        return ()


def _tokens(row: dict[str, str], column: str) -> int:
    text = row[column].strip()
    if not text.isascii() or not text.isdigit() or int(text) > 10**9:
        raise ValueError(f"{column} is {text[:40]!r}; must be an integer >= 0")
    return int(text)
