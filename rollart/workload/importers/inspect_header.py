"""The task that an Inspect log is of, and the run."""

import re
import zipfile
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.importers.sample import SAMPLE_BYTES
from rollart.workload.trace import Name
from rollart.workload.trace_reader import open_binary, translated_errors

_HEADERS = ("header.json", "_journal/start.json")
"""The second is in the archive of a run that did not end."""
_TEXT = rb'\s*:\s*("(?:[^"\\]|\\.)*")'
_TASK = re.compile(rb'"task"' + _TEXT)
_RUN = re.compile(rb'"run_id"' + _TEXT)


class Log(msgspec.Struct, frozen=True):
    """What a log's header says of all its samples."""

    task: Name
    run: str = msgspec.field(name="run_id", default="")


class _Header(msgspec.Struct, frozen=True):
    eval: Log


def log_of_archive(path: Path) -> Log:
    """Of an .eval archive; TraceError if it is none."""
    name = _HEADERS[0]
    try:
        with zipfile.ZipFile(path) as archive:
            found = next((name for name in _HEADERS if name in archive.namelist()), None)
            if found is None:
                raise TraceError(f"{path}: is an archive without {name}; must be an Inspect log (.eval)")
            name = found
            return msgspec.json.decode(archive.read(name), type=_Header).eval
    except (zipfile.BadZipFile, EOFError) as error:
        raise TraceError(f"{path}: zip archive is damaged or cut off: {error}; copy the file again") from error
    except msgspec.DecodeError as error:
        raise TraceError(f"{path}: {name} is not the header of an Inspect log: {error}") from error


def log_of_document(path: Path) -> Log:
    """Of a .json log, whose header stands first."""
    with translated_errors(path), open_binary(path) as file:
        start = file.read(SAMPLE_BYTES)
    task, run = _TASK.search(start), _RUN.search(start)
    return Log(
        task=msgspec.json.decode(task.group(1), type=str) if task else "inspect",
        run=msgspec.json.decode(run.group(1), type=str) if run else path.name,
    )
