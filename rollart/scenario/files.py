"""Finds the files that a scenario names."""

from pathlib import Path

from rollart.domain.errors import ScenarioError

ROOT = Path(__file__).resolve().parents[2]
"""Folder that holds the package: in a checkout, `traces/` lies there."""


def find_file(name: str, folder: Path, place: str) -> Path:
    """A file relative to the scenario's folder, else to the root of the checkout; ScenarioError if in neither."""
    for base in (folder, ROOT):
        path = base / Path(name).expanduser()
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):
            break
    raise ScenarioError(f"{place}: there is no file {name[:200]!r} in {folder} or {ROOT}")
