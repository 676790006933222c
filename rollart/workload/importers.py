"""Every foreign trace format that can be read, by name."""

from collections.abc import Iterator
from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.importer import Importer
from rollart.workload.openai_chat import OpenAIChatImporter
from rollart.workload.tau_bench import TauBenchImporter
from rollart.workload.trace import TraceTrajectory

IMPORTERS: dict[str, Importer] = {importer.format: importer for importer in (TauBenchImporter(), OpenAIChatImporter())}


def import_trace(format_name: str, path: Path) -> Iterator[TraceTrajectory]:
    """Trajectories of a file in a foreign format; TraceError for a format that is not known."""
    importer = IMPORTERS.get(format_name)
    if importer is None:
        raise TraceError(f"format {format_name!r} is not known; known are {', '.join(sorted(IMPORTERS))}")
    return importer.read(path)
