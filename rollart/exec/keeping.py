"""Keeps a run that is under way, so that it can be resumed: a journal of its records, a snapshot every few steps."""

from pathlib import Path

from rollart.domain.errors import RunInterrupted
from rollart.exec.driver import SampledLog
from rollart.exec.journal import Journal
from rollart.exec.journaled_log import JournaledLog
from rollart.exec.restoring import Restored
from rollart.exec.saved_run import SavedRun
from rollart.runlog.writer import RunLogWriter
from rollart.sched.controller import Controller


class Keeper:
    """What a driver's log and its steps go through; without a saved run it keeps nothing."""

    def __init__(self, saved: SavedRun | None, log: RunLogWriter, restored: Restored) -> None:
        """Open the journal, and complete it where it broke off. Raises OutputError."""
        self._saved = saved
        self._controller = restored.controller
        self._every = restored.controller.policy.recovery.checkpoint_every
        self._journal = None if saved is None else Journal(saved.journal_path)
        self.log: SampledLog = log if self._journal is None else JournaledLog(log, self._journal)
        if restored.missing:
            self.log.commands(restored.time_s, restored.missing, restored.last_event)

    @property
    def workers_folder(self) -> Path | None:
        """Where workers keep what must outlive the driver."""
        return None if self._saved is None else self._saved.workers_folder

    def step_ended(self, version: int) -> None:
        """Take a snapshot, if it is time to."""
        if version % self._every == 0:
            self._snapshot(self._controller)

    def close(self, error: BaseException | None) -> None:
        """Bring all to the disk; after an interruption with a snapshot, after an error without, since none is sound."""
        if self._journal is None:
            return
        if isinstance(error, RunInterrupted):
            self._snapshot(self._controller)
        self._journal.close()

    def _snapshot(self, controller: Controller) -> None:
        if self._saved is not None and self._journal is not None:
            self._saved.take_snapshot(controller, self._journal)
