"""The far side of the messages: modelled workers that read commands and write events."""

from collections.abc import Callable
from dataclasses import dataclass

from rollart.costs.interface import TrainingCosts
from rollart.domain.job import Job
from rollart.exec.fake import wire
from rollart.exec.ports import ResumePoint
from rollart.modelled.assembly import EngineKind
from rollart.modelled.clock import Clock
from rollart.modelled.workers import Workers
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What the workers of a run are made from."""

    job: Job
    workload: Workload
    kinds: list[EngineKind]
    training: TrainingCosts


class FakeHost:
    """All fake workers of a run."""

    def __init__(self, models: Models, clock: Clock, send: Callable[[bytes], None]) -> None:
        """`send` puts a message on its way to the driver."""
        self.workers = Workers(
            models.job,
            models.workload,
            models.kinds,
            models.training,
            clock,
            lambda event: send(wire.encode(event)),
        )
        self._orders = self.workers.orders()

    def receive(self, message: bytes) -> None:
        """Carry a command out."""
        command = wire.command_of(message)
        self._orders[type(command)](command)

    def resume(self, point: ResumePoint) -> None:
        """Forget that anything is up; a command brings it back."""
        del point
        for worker in self.workers.engines:
            worker.kill()
        self.workers.trainer.up = False
