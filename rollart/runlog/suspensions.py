"""When each engine was suspended: from EngineSuspended or EngineStarted to EngineResumed, EngineLost or RunResumed."""

from dataclasses import dataclass

from rollart.domain.commands import SuspendEngine
from rollart.domain.events import EngineLost, EngineResumed, EngineStarted, EngineSuspended, RunResumed
from rollart.runlog.commandbook import CommandBook
from rollart.runlog.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Turning:
    """An engine stops or goes on."""

    seq: int
    time_s: float
    delta: int
    """+1: suspended, -1: no longer."""
    released: bool
    """The suspension gave the device memory back, for the trainer on the same devices."""


class Suspensions:
    """Suspended intervals of every engine, of the last finished step and later."""

    def __init__(self) -> None:
        """All engines run."""
        self._ended: dict[int, list[tuple[float, float]]] = {}
        self._since: dict[int, tuple[float, bool]] = {}
        self._releases: dict[int, bool] = {}

    def consume(self, window: Window, book: CommandBook) -> list[Turning]:
        """Take a window that the book has taken; the changes in order of seq."""
        orders = window.get(SuspendEngine)
        if orders is not None:
            self._releases.update(zip(orders.ints("id").tolist(), orders.flags("release_memory").tolist(), strict=True))
        turnings = (self._turn(*change) for change in self._changes(window, book))
        return [turning for turning in turnings if turning is not None]

    def overlaps(self, engine: int, begin_s: float, end_s: float) -> list[tuple[float, float]]:
        """The suspended parts of [begin_s, end_s], in order."""
        intervals = list(self._ended.get(engine, ()))
        since = self._since.get(engine)
        if since is not None:
            intervals.append((since[0], end_s))
        clipped = [(max(begin_s, begin), min(end_s, end)) for begin, end in intervals]
        return [(begin, end) for begin, end in clipped if begin < end]

    def forget_before(self, time_s: float) -> None:
        """Drop intervals that ended earlier."""
        for engine, intervals in self._ended.items():
            self._ended[engine] = [interval for interval in intervals if interval[1] >= time_s]

    def _changes(self, window: Window, book: CommandBook) -> list[tuple[int, float, int, bool, bool]]:
        """(seq, time_s, engine, suspends, released) in order of seq."""
        changes: list[tuple[int, float, int, bool, bool]] = []
        for batch in window.of((EngineSuspended, EngineStarted, EngineResumed)):
            suspends = batch.kind.type is not EngineResumed
            ids = batch.ints("command_id")
            rows = book.commands.find(ids)
            engines = book.commands["engine"][rows]
            for seq, time_s, command, row, engine in zip(
                batch.seq.tolist(),
                batch.time_s.tolist(),
                ids.tolist(),
                rows.tolist(),
                engines.tolist(),
                strict=True,
            ):
                released = self._releases.pop(command, False)
                if row >= 0:
                    changes.append((seq, time_s, engine, suspends, released))
        losses = window.get(EngineLost)
        if losses is not None:
            for seq, time_s, engine in zip(
                losses.seq.tolist(), losses.time_s.tolist(), losses.ints("engine").tolist(), strict=True
            ):
                changes.append((seq, time_s, engine, False, False))
        resumptions = window.get(RunResumed)
        if resumptions is not None:
            concerned = {change[2] for change in changes} | set(self._since)
            for seq, time_s in zip(resumptions.seq.tolist(), resumptions.time_s.tolist(), strict=True):
                changes += [(seq, time_s, engine, False, False) for engine in concerned]
        return sorted(changes)

    def _turn(self, seq: int, time_s: float, engine: int, suspends: bool, released: bool) -> Turning | None:
        since = self._since.get(engine)
        if suspends == (since is not None):
            return None
        if since is None:
            self._since[engine] = (time_s, released)
            return Turning(seq=seq, time_s=time_s, delta=1, released=released)
        del self._since[engine]
        self._ended.setdefault(engine, []).append((since[0], time_s))
        return Turning(seq=seq, time_s=time_s, delta=-1, released=since[1])
