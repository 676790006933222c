"""Where the results of a run go, and that nothing foreign is overwritten there."""

from pathlib import Path

from rollart.domain.errors import OutputError

RUN_FILES = ("summary.json", "runlog.parquet", "comparison.json")
"""Any of them marks a folder as one of ours."""
DEFAULT_PARENT = Path("runs")


def single_folder(out: Path | None, scenario: str, policy: str) -> Path:
    """Folder of one run: the one asked for, else `runs/<scenario>-<policy>`."""
    return out or DEFAULT_PARENT / f"{scenario}-{policy}"


def parent_folder(out: Path | None, scenario: str) -> Path:
    """Folder of several runs, which get folders of their own in it: the one asked for, else `runs/<scenario>`."""
    return out or DEFAULT_PARENT / scenario


def prepare(folder: Path) -> Path:
    """Check the folder, which is as it was afterwards; OutputError if it can't be written, or holds what is no run."""
    existed = folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What a run that was stopped left behind starts with .part.
        held = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".part")}
        if not existed:
            folder.rmdir()
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written: {error.strerror or error}; choose another folder with -o"
        ) from error
    if held and not held & set(RUN_FILES) and not _holds_runs(folder):
        raise OutputError(f"{folder}: is not empty and not a run of ours; choose another folder with -o")
    return folder


def _holds_runs(folder: Path) -> bool:
    """Whether everything in it is a folder of a run, as a comparison that was stopped leaves it."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".part")]
    return all((entry / RUN_FILES[0]).is_file() for entry in entries)
