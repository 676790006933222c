"""What became of every trajectory: one short row each, kept to the end of the run.

Trajectories are numbered from 0, so a row is found by its number; it takes 22 bytes and 8 for each
engine group.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from rollart.domain.commands import EndTrajectory, ResetEnvironment
from rollart.domain.events import EnvironmentStepped, TrajectoryScored, TurnGenerated
from rollart.domain.trajectory import End
from rollart.runlog.commandbook import GENERATE, Closings, CommandBook
from rollart.runlog.exchange import Commands
from rollart.runlog.header import EngineEntry
from rollart.runlog.ledger import Array, Roll
from rollart.runlog.window import Batch, Ints, Window

ENDS = tuple(End)
"""Codes of ends in the column `end`; -1 while there is none."""


class Trajectories:
    """The rows, and the sums by engine group that the shares of waste need."""

    def __init__(self, tasks: Sequence[str], engines: Sequence[EngineEntry]) -> None:
        """Tasks and engines of the header."""
        self.groups = tuple(dict.fromkeys(entry.group for entry in engines))
        self._task_code = {task: code for code, task in enumerate(tasks)}
        self._group_of = np.full(max((entry.engine for entry in engines), default=0) + 1, -1, dtype=np.int64)
        for entry in engines:
            self._group_of[entry.engine] = self.groups.index(entry.group)
        self.rows = Roll(
            task=(np.int16, -1, ()),
            end=(np.int8, -1, ()),
            reward=(np.float64, np.nan, ()),
            turns=(np.int64, 0, ()),
            stepped=(np.bool_, False, ()),
            over=(np.bool_, False, ()),
            cut=(np.bool_, False, ()),
            residency_s=(np.float64, 0.0, (len(self.groups),)),
        )
        """`turns` count every attempt; `over`: the environment said done; `cut`: its last turn hit `max_tokens`;
        `residency_s`: seconds between GenerateTurn and its end on each engine group, by the last attempt."""
        self.failed_attempts_s = np.zeros(len(self.groups))
        """Residency of attempts that were given up, by engine group."""
        self.prefill_s = np.zeros(len(self.groups))
        self.decode_s = np.zeros(len(self.groups))

    def consume(self, window: Window, commands: Commands, closings: Closings, book: CommandBook) -> None:
        """Take a window that the book has taken."""
        self.rows.reach(int(commands.trajectory.max(initial=-1)))
        code = book.commands["code"][closings.row]
        trajectory = book.commands["trajectory"][closings.row]
        resets = window.get(ResetEnvironment)
        if resets is not None:
            codes = [self._task_code[task] for task in resets.texts("task")]
            self.rows["task"][resets.ints("trajectory")] = codes
        self._reside(closings, book, code == GENERATE, self._given_up(resets))
        for batch, chosen, which in _answered(window, closings, trajectory):
            self._answer(batch, chosen, which)
        self._time_phases(window, book)
        ended = window.get(EndTrajectory)
        if ended is not None:
            codes = [ENDS.index(End(end)) for end in ended.texts("end")]
            self.rows["end"][ended.ints("trajectory")] = codes

    @property
    def truncated(self) -> Array:
        """Which trajectories were cut off by the context or the turn limit."""
        cut: Array = self.rows["cut"] | (self.rows["stepped"] & ~self.rows["over"])
        return cut

    def _given_up(self, resets: Batch | None) -> dict[int, int]:
        """Seq of the last retry of each trajectory that was reset again; its residency so far is written off."""
        if resets is None:
            return {}
        again = resets.ints("attempt") > 0
        trajectory = resets.ints("trajectory")[again]
        residency = self.rows["residency_s"]
        self.failed_attempts_s += residency[np.unique(trajectory)].sum(axis=0)
        residency[trajectory] = 0.0
        return dict(zip(trajectory.tolist(), resets.seq[again].tolist(), strict=True))

    def _reside(self, closings: Closings, book: CommandBook, wanted: Array, given_up: dict[int, int]) -> None:
        row = closings.row[wanted]
        spent_s = closings.time_s[wanted] - book.commands["time_s"][row]
        trajectory = book.commands["trajectory"][row]
        group = self._group_of[book.commands["engine"][row]]
        if given_up:
            again = np.array([given_up.get(each, -1) for each in trajectory.tolist()], dtype=np.int64)
            failed = closings.seq[wanted] < again
            np.add.at(self.failed_attempts_s, group[failed], spent_s[failed])
            spent_s = np.where(failed, 0.0, spent_s)
        np.add.at(self.rows["residency_s"], (trajectory, group), spent_s)

    def _time_phases(self, window: Window, book: CommandBook) -> None:
        turns = window.get(TurnGenerated)
        if turns is None:
            return
        rows = book.commands.find(turns.ints("command_id"))
        known = rows >= 0
        group = self._group_of[book.commands["engine"][rows[known]]]
        np.add.at(self.prefill_s, group, turns.floats("prefill_s")[known])
        np.add.at(self.decode_s, group, turns.floats("decode_s")[known])

    def _answer(self, batch: Batch, chosen: Ints, trajectory: Ints) -> None:
        if batch.kind.type is TurnGenerated:
            np.add.at(self.rows["turns"], trajectory, 1)
            self.rows["cut"][trajectory] = batch.flags("truncated")[chosen]
        elif batch.kind.type is EnvironmentStepped:
            self.rows["stepped"][trajectory] = True
            self.rows["over"][trajectory] = batch.flags("done")[chosen]
        else:
            self.rows["reward"][trajectory] = batch.floats("reward")[chosen]


def _answered(window: Window, closings: Closings, trajectory: Ints) -> Iterator[tuple[Batch, Ints, Ints]]:
    """Per kind of answer: its batch, the places in it that counted, and their trajectories."""
    for batch in window.of((TurnGenerated, EnvironmentStepped, TrajectoryScored)):
        place = np.minimum(np.searchsorted(batch.seq, closings.seq), len(batch) - 1)
        counts = closings.by_answer & (batch.seq[place] == closings.seq)
        yield batch, place[counts], trajectory[counts]
