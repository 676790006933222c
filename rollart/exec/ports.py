"""What a driver and its workers owe each other, whatever the workers are.

The driver calls `start` (or `resume`), carries commands out by the table of `orders`, reads `samples` at the end of
every step, and calls `stop` once, also after an error. Workers call `report` with what has happened, and `fail` with
an exception that nobody can mend: it ends the run.

Laws of workers:

- They decide nothing: no retry, no restart, no fallback of their own. What failed is an event; what follows is the
  controller's next command.
- `orders` must not block: a handler starts the work and returns. `report` and `fail` are called on the driver's event
  loop; from another thread go through `loop.call_soon_threadsafe`.
- Orders to one worker are carried out in the order of their ids. Events with late or stale ids are welcome: the
  controller ignores them.
- The data of a scored trajectory must outlive the driver, and its `EndTrajectory` when its end is `trained`, until a
  checkpoint of the trainer has it; the data of any other end may be dropped at once.
- The trainer keeps the checkpoint of the last step whose end it has reported until the `TrainBatch` after it: the
  controller may never have heard of that end.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rollart.domain.commands import Command
from rollart.domain.events import Event
from rollart.modelled.clock import Clock
from rollart.runlog.samples import Sample

Orders = Mapping[type[Command], Callable[[Any], object]]
"""Who carries out each kind of command; every kind but StopRun, which is the driver's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What workers are given of their driver."""

    clock: Clock
    report: Callable[[Event], None]
    """A fact has happened."""
    fail: Callable[[BaseException], None]
    """The run cannot go on; the driver stops everything and raises this."""
    folder: Path | None
    """Where workers keep what must outlive the driver (checkpoints, scored trajectories); None: nothing must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A scored trajectory of a run that is resumed: its drawing is known by these numbers alone."""

    trajectory: int
    task: str
    prompt: int
    member: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where an interrupted run goes on."""

    checkpoint: int
    """The version that the trainer will be asked to load."""
    survivors: tuple[Survivor, ...]
    """Trajectories that are scored or taken and will be trained on: their data must still be there."""


class WorkerSet(Protocol):
    """All workers of a run."""

    async def start(self) -> None:
        """Bring everything up; engines hold version 0. Raises RollArtError when it cannot be."""
        ...

    async def resume(self, point: ResumePoint) -> None:
        """Get ready after an interruption: every engine and the trainer is down until a command restarts it.

        Raises RunLogError where the data of a survivor or the checkpoint is gone.
        """
        ...

    def orders(self) -> Orders:
        """Who carries out each kind of command."""
        ...

    def samples(self) -> Iterator[Sample]:
        """A reading of every counter, each counted from 0 at `start` or `resume`."""
        ...

    def figures(self) -> Mapping[str, Any]:
        """What the workers add to the summary of the run, by key; read after `stop`."""
        ...

    async def stop(self) -> None:
        """Take everything down; never raises for what is down already."""
        ...


WorkerFactory = Callable[[Desk], WorkerSet]
"""Makes the workers of a run at their driver's desk."""
