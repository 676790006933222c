"""What is kept of a run so that it can go on after its driver is gone: header, journal, snapshots, workers' data.

A snapshot is the controller's state after a number of journal records. To resume, the state comes from the latest
snapshot and the events behind it, each of which must lead to the commands that the journal has; the run log is written
anew from the journal.
"""

import os
import shutil
from pathlib import Path

import msgspec

from rollart.domain.errors import OutputError, RunLogError
from rollart.exec.journal import MAGIC, Journal
from rollart.runlog.header import RunHeader
from rollart.sched.controller import Controller

JOURNAL = "journal.bin"
SNAPSHOT = "snapshot.json"
HEADER = "header.json"
WORKERS = "workers"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's state at a place in the journal."""

    records: int
    """Journal records that led to it."""
    state: msgspec.Raw


class SavedRun:
    """The folder of a run that is under way or was interrupted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.journal_path.is_file() and self.journal_path.stat().st_size > len(MAGIC)

    @property
    def journal_path(self) -> Path:
        """The write-ahead log."""
        return self.folder / JOURNAL

    @property
    def workers_folder(self) -> Path:
        """Where workers keep what must outlive the driver."""
        return self.folder / WORKERS

    def begin(self, header: RunHeader) -> None:
        """Start afresh. Raises OutputError."""
        self.drop()
        self._write(HEADER, msgspec.json.encode(header))

    def check(self, header: RunHeader) -> None:
        """Raise RunLogError unless the run that was saved is the one that `header` describes."""
        try:
            saved = msgspec.json.decode((self.folder / HEADER).read_bytes(), type=RunHeader)
        except FileNotFoundError:
            raise RunLogError(f"{self.folder.parent}: there is no interrupted run to resume; run it without") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise RunLogError(f"{self.folder / HEADER}: cannot be read: {error}") from error
        for name in header.__struct_fields__:
            before, now = (msgspec.json.encode(getattr(each, name), order="sorted") for each in (saved, header))
            if name != "code_version" and before != now:
                raise RunLogError(
                    f"{self.folder.parent}: the interrupted run had another {name}; resume it with the same scenario, "
                    "plan, policy, seed and steps"
                )

    def take_snapshot(self, controller: Controller, journal: Journal) -> None:
        """Save the state, once all that led to it is on the disk. Raises OutputError."""
        journal.sync()
        snapshot = Snapshot(records=journal.records, state=msgspec.Raw(controller.snapshot()))
        self._write(SNAPSHOT, msgspec.json.encode(snapshot))

    def snapshot(self) -> Snapshot | None:
        """The latest snapshot, if there is one. Raises RunLogError."""
        try:
            return msgspec.json.decode((self.folder / SNAPSHOT).read_bytes(), type=Snapshot)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise RunLogError(f"{self.folder / SNAPSHOT}: cannot be read: {error}") from error

    def drop(self) -> None:
        """Forget the run: it is complete, or another one begins."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name: str, content: bytes) -> None:
        """Put a file in its place, whole or not at all."""
        path = self.folder / name
        part = path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise OutputError(
                f"{path}: {error.strerror or error}; give a folder that is writable and has room"
            ) from error
