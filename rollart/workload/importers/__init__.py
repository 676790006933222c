"""Brings recordings of other systems in: one small reader for each format behind one interface.

`formats` lists the formats, `trace_import` runs an import, `docs/traces.md` says what each format becomes and
what it lacks.
"""

from collections.abc import Iterator
from pathlib import Path

from rollart.workload.importers.formats import READERS
from rollart.workload.importers.trace_import import ImportOptions, TraceImport
from rollart.workload.trace import TraceTrajectory

IMPORTERS = READERS
"""Formats by name; each has `format` and `about`."""


def import_trace(format_name: str, path: Path) -> Iterator[TraceTrajectory]:
    """Trajectories of one file, strictly; TraceError for a format that is not known, and for the first bad record."""
    return iter(TraceImport((path,), ImportOptions(format=format_name, strict=True)))


__all__ = ["IMPORTERS", "ImportOptions", "TraceImport", "import_trace"]
