"""The trainer in simulated time: one step at a time, as long as its cost model says."""

from collections.abc import Callable

from rollart.costs.interface import TrainingCosts
from rollart.domain.commands import TrainBatch
from rollart.domain.events import Event, TrainingEnded
from rollart.modelled.clock import Call, Clock


class Trainer:
    """Makes one version out of each batch."""

    def __init__(self, costs: TrainingCosts, context_limit: int, clock: Clock, report: Callable[[Event], None]) -> None:
        self._costs = costs
        self._context_limit = context_limit
        self._clock = clock
        self._report = report
        self.busy_s = 0.0

    def train(self, command: TrainBatch) -> None:
        """Train; a compacted trajectory counts at most `context_limit` tokens, as one training sequence."""
        lengths = [min(tokens, self._context_limit) for tokens in command.context_tokens]
        duration_s = self._costs.step(lengths).total_s
        self.busy_s += duration_s
        self._clock.after(duration_s, self._trained, command)

    def _trained(self, call: Call[TrainBatch]) -> None:
        command = call.payload
        self._report(TrainingEnded(command_id=command.id, version=command.version))
