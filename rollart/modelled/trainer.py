"""The trainer in simulated time: one step at a time, as long as its cost model says. Checkpoints cost it nothing."""

from collections.abc import Callable

from rollart.costs.interface import TrainingCosts
from rollart.domain.commands import RestartTrainer, TrainBatch
from rollart.domain.events import Event, TrainerLost, TrainerStarted, TrainingEnded
from rollart.modelled.clock import Clock


class Trainer:
    """Makes one version out of each batch."""

    def __init__(self, costs: TrainingCosts, context_limit: int, clock: Clock, report: Callable[[Event], None]) -> None:
        self._costs = costs
        self._context_limit = context_limit
        self._clock = clock
        self._report = report
        self.busy_s = 0.0
        self.up = True
        self.incarnation = 0
        self._open: int | None = None
        """The TrainBatch that it works on."""
        self._ends_s = 0.0
        self._unused_s = 0.0
        """Seconds that were counted as busy for a step that was cut short."""

    def train(self, command: TrainBatch) -> None:
        """Train; a compacted trajectory counts at most `context_limit` tokens, as one training sequence."""
        if not self.up:
            # The report of its death is on its way.
            return
        lengths = [min(tokens, self._context_limit) for tokens in command.context_tokens]
        duration_s = self._costs.step(lengths).total_s
        counted_s = min(duration_s, self._unused_s)
        self._unused_s -= counted_s
        self.busy_s += duration_s - counted_s
        self._open, self._ends_s = command.id, self._clock.now + duration_s
        self._clock.after(duration_s, self._trained, command)

    def _trained(self, command: TrainBatch) -> None:
        if self._open == command.id:
            self._open = None
            self._report(TrainingEnded(command_id=command.id, version=command.version))

    def lose(self) -> None:
        """Die, with the step at hand."""
        if self._open is not None:
            self._unused_s += max(0.0, self._ends_s - self._clock.now)
        self.up, self._open = False, None
        self._report(TrainerLost(incarnation=self.incarnation))

    def start(self, command: RestartTrainer) -> None:
        """Come back with the checkpoint loaded."""
        self.up, self.incarnation = True, command.incarnation
        self._report(TrainerStarted(command_id=command.id))
