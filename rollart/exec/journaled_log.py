"""A run log whose records go to the journal first."""

from collections.abc import Sequence

from rollart.domain.commands import Command
from rollart.domain.events import Event, TrainingEnded
from rollart.exec.journal import Journal
from rollart.runlog.samples import Sample
from rollart.runlog.writer import RunLogWriter


class JournaledLog:
    """Writes every record to the journal and to the log.

    The end of a training step is on the disk before anything follows from it, since the trainer may then give up the
    checkpoint before.
    """

    def __init__(self, log: RunLogWriter, journal: Journal) -> None:
        self._log = log
        self._journal = journal

    def event(self, time_s: float, event: Event) -> int:
        """Log an event; its sequence number is the cause of the commands that answer it."""
        self._journal.add(time_s, event)
        if type(event) is TrainingEnded:
            self._journal.sync()
        return self._log.event(time_s, event)

    def commands(self, time_s: float, commands: Sequence[Command], cause_seq: int) -> None:
        """Log what the controller ordered when it handled the event `cause_seq`."""
        for command in commands:
            self._journal.add(time_s, command)
        self._log.commands(time_s, commands, cause_seq)

    def sample(self, time_s: float, sample: Sample) -> None:
        """Log a reading of counters."""
        self._journal.add(time_s, sample)
        self._log.sample(time_s, sample)
