"""The name of the task that an Inspect log is of."""

import re
import zipfile
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.importers.sample import SAMPLE_BYTES
from rollart.workload.trace import Name
from rollart.workload.trace_reader import open_binary, translated_errors

_TASK = re.compile(rb'"task"\s*:\s*("(?:[^"\\]|\\.)*")')
_HEADERS = ("header.json", "_journal/start.json")
"""The second is in the archive of a run that did not end."""


class _Eval(msgspec.Struct, frozen=True):
    task: Name


class _Header(msgspec.Struct, frozen=True):
    eval: _Eval


def task_of_archive(path: Path) -> str:
    """Of an .eval archive; TraceError if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((name for name in _HEADERS if name in archive.namelist()), None)
            if name is None:
                raise TraceError(f"{path}: is an archive without {_HEADERS[0]}; must be an Inspect log (.eval)")
            return msgspec.json.decode(archive.read(name), type=_Header).eval.task
    except (zipfile.BadZipFile, EOFError) as error:
        raise TraceError(f"{path}: zip archive is damaged or cut off: {error}; copy the file again") from error
    except msgspec.DecodeError as error:
        raise TraceError(f"{path}: {name} is not the header of an Inspect log: {error}") from error


def task_of_document(path: Path) -> str:
    """Of a .json log, whose header stands first."""
    with translated_errors(path), open_binary(path) as file:
        found = _TASK.search(file.read(SAMPLE_BYTES))
    return msgspec.json.decode(found.group(1), type=str) if found else "inspect"
