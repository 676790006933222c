"""The files that an import reads: those that were named, and those in folders that were."""

from collections.abc import Sequence
from pathlib import Path

from rollart.domain.errors import TraceError

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".csv", ".log")
"""Of files that are looked at in a folder, before a possible .gz."""


def find_files(given: Sequence[Path]) -> list[tuple[Path, bool]]:
    """(file, whether it was found in a folder), each folder's files in the order of their names, recursively.

    TraceError for a path that is not there, and for a folder without any file that could be a recording.
    """
    found: list[tuple[Path, bool]] = []
    for path in given:
        if not path.is_dir():
            if not path.exists():
                raise TraceError(f"{path}: does not exist; must be a file or a folder")
            found.append((path, False))
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and _may_be_recording(file))
        if not inside:
            raise TraceError(f"{path}: has no file that ends in {', '.join(SUFFIXES)}, plain or .gz")
        found.extend((file, True) for file in inside)
    return found


def _may_be_recording(path: Path) -> bool:
    name = path.name.removesuffix(".gz").lower()
    return name.endswith(SUFFIXES) and not path.name.startswith(".")
