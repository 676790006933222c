"""The trainer's loop: get a batch, update the weights, train - in the order that the policy says."""

from rollart.domain.commands import StopRun
from rollart.domain.events import TrainerLost, TrainerStarted, TrainingEnded
from rollart.sched.buffer import Buffer
from rollart.sched.config import ControllerConfig
from rollart.sched.orders import Orders
from rollart.sched.parts.registry import Policy
from rollart.sched.state import ControllerState
from rollart.sched.trainer import Trainer
from rollart.sched.weights import Weights


class TrainingLoop:
    """Takes batches, one at a time, and sends new versions on their way; the weight update's `Loop`."""

    __slots__ = ("_buffer", "_config", "_orders", "_shared", "_state", "_update_first", "_weights", "trainer")

    def __init__(
        self,
        config: ControllerConfig,
        state: ControllerState,
        policy: Policy,
        orders: Orders,
        buffer: Buffer,
        weights: Weights,
    ) -> None:
        self._config = config
        self._state = state
        self._orders = orders
        self._buffer = buffer
        self._weights = weights
        self.trainer = Trainer(config, state, policy, orders)
        self._shared = any(group.time_shared for group in config.classes)
        # Time-shared engines stand still until the update: a batch that they must finish would never come first.
        self._update_first = self._shared or policy.sync.order == "update_first"

    def start(self) -> None:
        """Open the rollout of the first batch."""
        self._buffer.admit()

    def get_batch(self) -> None:
        """Take a batch if the trainer is free and one is ready; while an update runs, admission does not count it."""
        state = self._state
        if state.stopped or state.training >= 0 or state.batch or self._weights.blocked:
            return
        if self._update_first and state.trained > state.installed:
            return
        if not self._buffer.batch_is_ready():
            return
        state.batch_installed = state.installed
        state.batch = self._buffer.take_batch()
        state.taken += 1
        if state.trained > state.installed and not self._weights.on_its_way:
            self._weights.install()
        else:
            self._train()

    def _train(self) -> None:
        self._state.counted = self._state.taken
        if self._shared:
            self._weights.offload()
        else:
            self._order_training()
        self._buffer.admit()

    def _order_training(self) -> None:
        state = self._state
        batch, state.batch = state.batch, []
        self.trainer.train(batch, state.batch_installed)

    def on_trained(self, event: TrainingEnded) -> None:
        """A version is made: publish it, and look for the next batch; after the last step, stop."""
        state = self._state
        if state.open.pop(event.command_id, None) is None:
            return
        self.trainer.ended(event.version)
        if event.version <= state.trained:
            self._goes_on()
            return
        state.trained = event.version
        if state.taken >= self._config.steps:
            self._stop()
            return
        self._weights.trained(event.version)
        if self._update_first:
            self._weights.install()
        else:
            self.get_batch()

    def trainer_lost(self, event: TrainerLost) -> None:
        """The trainer comes back from its checkpoint; what it was pushing is lost with it."""
        if self.trainer.lost(event):
            self._weights.trainer_lost()

    def trainer_started(self, event: TrainerStarted) -> None:
        """It is back."""
        if self.trainer.started(event):
            self._goes_on()

    def _goes_on(self) -> None:
        """The trainer holds a version that was made before: do again what it lacks, push what waits for it."""
        self._weights.trainer_holds(self._state.trainer.version)
        self.trainer.go_on()
        if self._state.training < 0:
            self.get_batch()

    def _stop(self) -> None:
        self._buffer.end_all()
        self._orders.issue(StopRun, -1)
        self._state.stopped = True

    # What the weight update tells (Loop)

    def installed(self) -> None:
        """Evict what the new version makes too old, before the engines spend time on it."""
        self._buffer.evict()

    def resumed(self) -> None:
        """Go on: train on the batch that waited, or look for one; a new version may open the quota."""
        if self._state.batch:
            self._train()
        else:
            self._buffer.admit()
            self.get_batch()

    def offloaded(self) -> None:
        """The devices are the trainer's."""
        self._order_training()
