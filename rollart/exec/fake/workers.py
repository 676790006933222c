"""The set of fake workers: commands go out as messages, the host answers with messages.

Under a logical clock a message is delivered where it is sent, so that equal-time order is the simulator's. Under a wall
clock messages wait in queues, and all races between commands and events of a real run can happen.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from math import inf
from typing import Any

from rollart.costs.job_costs import training_costs
from rollart.domain.commands import COMMANDS, Command, StopRun
from rollart.domain.errors import InvariantError
from rollart.domain.job import Job
from rollart.exec.clocks import LogicalClock, WallClock
from rollart.exec.fake import wire
from rollart.exec.fake.host import FakeHost, Models
from rollart.exec.fake.lanes import DirectLane, Lane, QueueLane
from rollart.exec.ports import Desk, Orders, ResumePoint, WorkerFactory
from rollart.modelled.assembly import engine_kinds
from rollart.modelled.sampling import samples_of
from rollart.runlog.samples import Sample
from rollart.workload.trajectory import Workload


class FakeWorkers:
    """A `WorkerSet` of modelled workers."""

    def __init__(self, models: Models, clock: LogicalClock | WallClock, desk: Desk) -> None:
        self._desk = desk
        self._clock = clock
        self.host = FakeHost(models, clock, self._to_driver)
        self._commands, self._events = self._lanes(clock)

    def _lanes(self, clock: LogicalClock | WallClock) -> tuple[Lane, Lane]:
        if isinstance(clock, LogicalClock):
            return DirectLane(self.host.receive), DirectLane(self._received)
        commands = QueueLane(self.host.receive, self._desk.fail)
        events = QueueLane(self._received, self._desk.fail)
        commands.drained = events.drained = clock.on_empty = partial(self._look_for_life, clock)
        return commands, events

    def _look_for_life(self, clock: WallClock) -> None:
        """Fail rather than wait for ever: nothing is on its way and nothing will happen."""
        if self._commands.empty and self._events.empty and clock.next_s == inf and not clock.stopped:
            self._desk.fail(InvariantError(f"deadlock at {clock.now} s: nothing is due and the run is not over"))

    # A worker set

    async def start(self) -> None:
        """Open the lanes."""
        self._commands.open()
        self._events.open()

    async def resume(self, point: ResumePoint) -> None:
        """Begin with all engines down; the drawings of the survivors are known by their numbers."""
        self.host.resume(point)
        await self.start()

    def orders(self) -> Orders:
        """Every command is a message to the host."""
        return dict.fromkeys((kind for kind in COMMANDS if kind is not StopRun), self._order)

    def samples(self) -> Iterator[Sample]:
        """A reading of every counter."""
        return samples_of(self.host.workers)

    def figures(self) -> Mapping[str, Any]:
        """Nothing beyond what the log says."""
        return {}

    async def stop(self) -> None:
        """Close the lanes; messages on their way are lost."""
        await self._commands.close()
        await self._events.close()

    # Messages

    def _order(self, command: Command) -> None:
        self._commands.send(wire.encode(command))

    def _to_driver(self, message: bytes) -> None:
        self._events.send(message)

    def _received(self, message: bytes) -> None:
        self._desk.report(wire.event_of(message))


def fake_workers(job: Job, workload: Workload, clock: LogicalClock | WallClock) -> WorkerFactory:
    """Fake workers of a job with its cost models; CapacityError when the plan does not fit its devices."""
    models = Models(job=job, workload=workload, kinds=engine_kinds(job), training=training_costs(job))
    return partial(FakeWorkers, models, clock)
