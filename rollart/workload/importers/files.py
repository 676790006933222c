"""The files that an import reads: those that were named, and those in folders that were."""

from collections.abc import Sequence
from pathlib import Path

from rollart.domain.errors import TraceError

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".csv", ".log", ".parquet")
"""Of files that are looked at in a folder, before a possible .gz."""


def find_files(given: Sequence[Path]) -> list[tuple[Path, bool]]:
    """(file, whether it was found in a folder), each folder's files in the order of their names, recursively.

    TraceError for a path that is not there or given twice, and for a folder without any file that could be a recording.
    """
    found = [file for path in given for file in _files_of(path)]
    seen: set[Path] = set()
    for path, _ in found:
        if path.resolve() in seen:
            raise TraceError(f"{path}: is given twice; must be given once")
        seen.add(path.resolve())
    return found


def _files_of(path: Path) -> list[tuple[Path, bool]]:
    if not path.is_dir():
        if not path.exists():
            raise TraceError(f"{path}: does not exist; must be a file or a folder")
        return [(path, False)]
    inside = sorted(file for file in path.rglob("*") if file.is_file() and _may_be_recording(file))
    if not inside:
        raise TraceError(f"{path}: has no file that ends in {', '.join(SUFFIXES)}, plain or .gz")
    return [(file, True) for file in inside]


def _may_be_recording(path: Path) -> bool:
    name = path.name.removesuffix(".gz").lower()
    return name.endswith(SUFFIXES) and not path.name.startswith(".")


def bare_name(path: Path) -> str:
    """A file's name without what says its format."""
    name = path.name
    for suffix in (".gz", ".json", ".jsonl", ".traj"):
        name = name.removesuffix(suffix)
    return name
