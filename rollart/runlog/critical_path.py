"""The critical path of a step: what the end of its training waited for, back to the end of the step before.

From an event the walk goes to the command that it answers, from there to the event that caused the command, and so
on. The segments follow each other without gaps or overlaps, so they add up to the time of the step.
"""

from dataclasses import dataclass

from rollart.domain.commands import COMMANDS
from rollart.runlog.commandbook import GENERATE, CommandBook
from rollart.runlog.schema import ABSENT
from rollart.runlog.stages import STAGE_OF, Stage
from rollart.runlog.suspensions import Suspensions


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of the path."""

    begin_s: float
    end_s: float
    stage: Stage
    command: str | None
    """Type of the command that was waited for; None where nobody had been ordered to do anything."""
    trajectory: int | None
    engine: int | None

    @property
    def duration_s(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


def critical_path(book: CommandBook, suspensions: Suspensions, end_seq: int, begin_s: float) -> tuple[Segment, ...]:
    """The path from `begin_s` to the event `end_seq`, in order of time."""
    return tuple(reversed(_Walk(book, suspensions, begin_s).back_from(end_seq)))


class _Walk:
    def __init__(self, book: CommandBook, suspensions: Suspensions, begin_s: float) -> None:
        self._book = book
        self._suspensions = suspensions
        self._begin_s = begin_s
        self._segments: list[Segment] = []
        """Latest first."""

    def back_from(self, end_seq: int) -> list[Segment]:
        """All segments, latest first."""
        seq: int | None = end_seq
        followed_by: int | None = None
        while seq is not None:
            event = self._book.events.find_one(seq)
            assert event is not None, f"event {seq} of the current step was dropped"
            end_s = float(self._book.events["time_s"][event])
            command = self._answered(seq, int(self._book.events["command_id"][event]), followed_by)
            if command is None:
                seq = self._event_before(event, end_s)
            else:
                seq = self._through(command, end_s)
                followed_by = command
        return self._segments

    def _answered(self, seq: int, command_id: int, followed_by: int | None) -> int | None:
        """Row of the command that an event answers; for a lost engine, of the last that it cut short.

        A turn that was begun again elsewhere waited for its trajectory's command; an order to another engine, for
        an order to this one.
        """
        commands = self._book.commands
        if command_id != ABSENT:
            return commands.find_one(command_id)
        rows = [row for row in map(commands.find_one, self._book.lost.get(seq, ())) if row is not None]
        if followed_by is None or not rows:
            return None
        about = commands["trajectory"][followed_by]
        same = [row for row in rows if commands["trajectory"][row] == about]
        return max(same or rows)

    def _through(self, command: int, end_s: float) -> int | None:
        """Add the segment of a command; the event that caused it, None at the begin of the step."""
        commands = self._book.commands
        issued_s = float(commands["time_s"][command])
        self._add_command(command, max(issued_s, self._begin_s), end_s)
        if issued_s <= self._begin_s:
            return None
        cause_seq = int(commands["cause_seq"][command])
        cause = self._book.events.find_one(cause_seq)
        caused_s = self._begin_s if cause is None else float(self._book.events["time_s"][cause])
        self._add(max(caused_s, self._begin_s), issued_s, Stage.WAITING_FOR_BATCH)
        return cause_seq if cause is not None and caused_s > self._begin_s else None

    def _event_before(self, event: int, end_s: float) -> int | None:
        """Nothing leads to this event: go on from the one before it, whatever it was."""
        before_s = float(self._book.events["time_s"][event - 1]) if event > 0 else self._begin_s
        self._add(max(before_s, self._begin_s), end_s, Stage.WAITING_FOR_BATCH)
        return int(self._book.events["key"][event - 1]) if event > 0 and before_s > self._begin_s else None

    def _add_command(self, command: int, begin_s: float, end_s: float) -> None:
        commands = self._book.commands
        code, engine = int(commands["code"][command]), int(commands["engine"][command])
        kind = COMMANDS[code]
        about = (kind.__name__, int(commands["trajectory"][command]), engine)
        if code == GENERATE:
            for stop_s, go_s in reversed(self._suspensions.overlaps(engine, begin_s, end_s)):
                self._add(go_s, end_s, STAGE_OF[kind], about)
                self._add(stop_s, go_s, Stage.WEIGHT_SYNC_EXPOSED, about)
                end_s = stop_s
        self._add(begin_s, end_s, STAGE_OF[kind], about)

    def _add(
        self, begin_s: float, end_s: float, stage: Stage, about: tuple[str | None, int, int] = (None, -1, -1)
    ) -> None:
        if begin_s >= end_s:
            return
        command, trajectory, engine = about
        self._segments.append(
            Segment(
                begin_s=begin_s,
                end_s=end_s,
                stage=stage,
                command=command,
                trajectory=None if trajectory == ABSENT else trajectory,
                engine=None if engine == ABSENT else engine,
            )
        )
