"""Keeps which command was issued when and why, and what closed it.

A command is closed once: by its answer, by the answer to the AbortGeneration that targets it, by the
CloseEnvironment of its trajectory, by a CancelTimer, by the loss of its engine or of the trainer, by StopRun, or by
RunResumed; whichever came first. Rows that no later step can reach are dropped by `forget_before`.
"""

from dataclasses import dataclass

import numpy as np

from rollart.domain.commands import (
    COMMANDS,
    UNANSWERED,
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    Command,
    GenerateTurn,
    PushWeights,
    ResetEnvironment,
    RestartTrainer,
    StepEnvironment,
    StopRun,
    TrainBatch,
)
from rollart.domain.events import EngineLost, GenerationAborted, RunResumed, TrainerLost
from rollart.runlog.exchange import Commands, Events, commands_of, events_of
from rollart.runlog.ledger import Array, Ledger
from rollart.runlog.window import Flags, Floats, Ints, Window

CODE: dict[type[Command], int] = {kind: code for code, kind in enumerate(COMMANDS)}
"""Code of a command type, its index within COMMANDS."""

OPEN = np.inf
"""`closed_s` of a command that is still open."""

_ANSWERED = np.array([kind not in UNANSWERED for kind in COMMANDS])
_ENVIRONMENT = (CODE[ResetEnvironment], CODE[StepEnvironment])
_TRAINER = (CODE[TrainBatch], CODE[PushWeights], CODE[RestartTrainer])


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """What a window closed, in order of seq; the arrays run in parallel."""

    row: Ints
    """Row of the command in the book."""
    seq: Ints
    time_s: Floats
    by_answer: Flags
    """The command's own answer closed it, and no abort had been ordered."""


class CommandBook:
    """Commands and events of the last finished step and later, and older commands that are open."""

    def __init__(self) -> None:
        """An empty book."""
        self.commands = Ledger(
            seq=np.int64,
            time_s=np.float64,
            cause_seq=np.int64,
            closed_s=np.float64,
            code=np.int8,
            trajectory=np.int64,
            engine=np.int32,
        )
        """Keyed by command id."""
        self.events = Ledger(time_s=np.float64, command_id=np.int64)
        """Keyed by seq."""
        self.lost: dict[int, tuple[int, ...]] = {}
        """Commands that each loss, of an engine, of the trainer or of all workers, cut short, by its seq."""
        self._abort_targets: dict[int, int] = {}

    def consume(self, window: Window) -> tuple[Commands, Closings]:
        """Take a window; its commands, and what it closed."""
        commands, events = commands_of(window), events_of(window)
        closed_s = np.where(_ANSWERED[commands.code], OPEN, commands.time_s)
        self.commands.append(
            commands.id,
            {
                "seq": commands.seq,
                "time_s": commands.time_s,
                "cause_seq": commands.cause_seq,
                "closed_s": closed_s,
                "code": commands.code,
                "trajectory": commands.trajectory,
                "engine": commands.engine,
            },
        )
        self.events.append(events.seq, {"time_s": events.time_s, "command_id": events.command_id})
        return commands, self._close(window, events)

    def forget_before(self, time_s: float) -> None:
        """Drop events earlier than `time_s` and commands that were closed earlier."""
        kept = self.events["time_s"] >= time_s
        first_kept = int(self.events["key"][kept][0]) if kept.any() else None
        self.events.keep(kept)
        self.commands.keep(self.commands["closed_s"] >= time_s)
        self.lost = {seq: lost for seq, lost in self.lost.items() if first_kept is not None and seq >= first_kept}

    def _close(self, window: Window, events: Events) -> Closings:
        own = events.command_id >= 0
        found = [(self.commands.find(events.command_id[own]), events.seq[own], events.time_s[own])]
        answers = int(own.sum())
        aborted, targets = self._aborted(window)
        found += aborted
        found += self._closed_environments(window)
        found += self._cancelled_timers(window)
        found += self._lost_engines(window)
        found += self._lost_trainers(window)
        found += self._resumed(window)
        found += self._stopped(window)
        row = np.concatenate([part[0] for part in found])
        seq = np.concatenate([part[1] for part in found])
        time_s = np.concatenate([part[2] for part in found])
        # A turn whose abort was ordered is void, even if it was complete before the abort was.
        void = self.commands.find(targets)
        by_answer = (np.arange(len(row)) < answers) & ~np.isin(row, void)
        return self._first(row, seq, time_s, by_answer)

    def _first(self, row: Ints, seq: Ints, time_s: Floats, by_answer: Flags) -> Closings:
        """Keep the earliest closing of each command that is still open."""
        order = np.argsort(seq, kind="stable")
        order = order[row[order] >= 0]
        closed_s = self.commands["closed_s"]
        order = order[closed_s[row[order]] == OPEN]
        _, first = np.unique(row[order], return_index=True)
        order = order[np.sort(first)]
        row = row[order]
        closed_s[row] = time_s[order]
        return Closings(row=row, seq=seq[order], time_s=time_s[order], by_answer=by_answer[order])

    def _aborted(self, window: Window) -> tuple[list[tuple[Ints, Ints, Floats]], Ints]:
        """What GenerationAborted closes, and the targets of all aborts that were open in the window."""
        orders = window.get(AbortGeneration)
        if orders is not None:
            self._abort_targets.update(zip(orders.ints("id").tolist(), orders.ints("target").tolist(), strict=True))
        targets = np.fromiter(self._abort_targets.values(), dtype=np.int64)
        answers = window.get(GenerationAborted)
        if answers is None:
            return [], targets
        stopped = [self._abort_targets.pop(each, -1) for each in answers.ints("command_id").tolist()]
        rows = self.commands.find(np.array(stopped, dtype=np.int64))
        return [(rows, answers.seq, answers.time_s)], targets

    def _cancelled_timers(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        cancelled = window.get(CancelTimer)
        if cancelled is None:
            return []
        return [(self.commands.find(cancelled.ints("target")), cancelled.seq, cancelled.time_s)]

    def _closed_environments(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        closes = window.get(CloseEnvironment)
        if closes is None:
            return []
        trajectory = closes.ints("trajectory")
        # The open ones first: a step may have millions of commands, of which few are open.
        row = np.flatnonzero(self.commands["closed_s"] == OPEN)
        row = row[np.isin(self.commands["code"][row], _ENVIRONMENT)]
        row = row[np.isin(self.commands["trajectory"][row], trajectory)]

        def place(trajectories: Array, seq: Array) -> Array:
            within: Array = np.maximum(seq - window.first_seq + 1, 0)
            placed: Array = trajectories * (len(window) + 2) + within
            return placed

        # Each open command is closed by the next CloseEnvironment of its own trajectory.
        order = np.argsort(place(trajectory, closes.seq))
        closing = place(trajectory, closes.seq)[order]
        issued = place(self.commands["trajectory"][row], self.commands["seq"][row])
        following = np.searchsorted(closing, issued, side="right")
        exists = following < len(closing)
        row, chosen = row[exists], order[following[exists]]
        same = trajectory[chosen] == self.commands["trajectory"][row]
        row, chosen = row[same], chosen[same]
        return [(row, closes.seq[chosen], closes.time_s[chosen])]

    def _lost_engines(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        losses = window.get(EngineLost)
        if losses is None:
            return []
        found = []
        for seq, time_s, engine, cut in zip(
            losses.seq.tolist(),
            losses.time_s.tolist(),
            losses.ints("engine").tolist(),
            losses.int_lists("commands"),
            strict=True,
        ):
            row = self._open_before(seq)
            # A turn is cut short as well where the lost engine was to compute its prompt.
            held = (self.commands["engine"][row] == engine) | np.isin(self.commands["key"][row], cut)
            found.append(self._cut(seq, time_s, row[held]))
        return found

    def _lost_trainers(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        losses = window.get(TrainerLost)
        if losses is None:
            return []
        return [
            self._cut(seq, time_s, row[np.isin(self.commands["code"][row], _TRAINER)])
            for seq, time_s in zip(losses.seq.tolist(), losses.time_s.tolist(), strict=True)
            for row in [self._open_before(seq)]
        ]

    def _resumed(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        resumptions = window.get(RunResumed)
        if resumptions is None:
            return []
        return [
            self._cut(seq, time_s, self._open_before(seq))
            for seq, time_s in zip(resumptions.seq.tolist(), resumptions.time_s.tolist(), strict=True)
        ]

    def _cut(self, seq: int, time_s: float, row: Ints) -> tuple[Ints, Ints, Floats]:
        """Rows that the loss `seq` cut short."""
        self.lost[seq] = tuple(self.commands["key"][row].tolist())
        return row, np.full(len(row), seq), np.full(len(row), time_s)

    def _stopped(self, window: Window) -> list[tuple[Ints, Ints, Floats]]:
        stops = window.get(StopRun)
        if stops is None:
            return []
        row = self._open_before(int(stops.seq[0]))
        return [(row, np.full(len(row), stops.seq[0]), np.full(len(row), stops.time_s[0]))]

    def _open_before(self, seq: int) -> Ints:
        return np.flatnonzero((self.commands["closed_s"] == OPEN) & (self.commands["seq"] < seq))


GENERATE = CODE[GenerateTurn]
"""Code of GenerateTurn."""
