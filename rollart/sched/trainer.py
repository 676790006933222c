"""The trainer as the controller knows it: what it holds, what its last checkpoint lacks, and what it does next.

Steps are kept until a checkpoint has them. A trainer that is lost starts again from its checkpoint and does the kept
steps again, with the same batches in the same order; only then comes the next batch. Steps that were made after the
checkpoint are void: of each step the last time counts, so nothing is trained twice.
"""

from rollart.domain.commands import RestartTrainer, TrainBatch
from rollart.domain.errors import StuckError
from rollart.domain.events import TrainerLost, TrainerStarted
from rollart.sched.config import ControllerConfig
from rollart.sched.orders import Orders
from rollart.sched.parts.registry import Policy
from rollart.sched.state import ControllerState, Step, Trajectory


class Trainer:
    """Hands the trainer its steps, one at a time, and brings it back when it is lost."""

    __slots__ = ("_checkpoint_every", "_last_step", "_most_losses", "_orders", "_state")

    def __init__(self, config: ControllerConfig, state: ControllerState, policy: Policy, orders: Orders) -> None:
        self._state = state
        self._orders = orders
        self._most_losses = policy.recovery.max_trainer_losses
        shared = any(group.time_shared for group in config.classes)
        # It could not do steps again while the engines have its devices, so there every step is saved.
        self._checkpoint_every = 1 if shared else policy.recovery.checkpoint_every
        self._last_step = config.steps - 1

    def train(self, batch: list[Trajectory], installed: int) -> None:
        """Give it a batch that was taken while `installed` was installed."""
        state = self._state
        state.trainer.steps.append(
            Step(
                step=state.taken - 1,
                version=state.trained + 1,
                installed=installed,
                trajectories=tuple(t.id for t in batch),
                start_versions=tuple(t.start_version for t in batch),
                context_tokens=tuple(t.total_tokens for t in batch),
            )
        )
        if state.training >= 0:
            # It does steps again; this one comes after them.
            return
        if not state.trainer.up:
            state.training = state.trainer.order
        self.go_on()

    def go_on(self) -> None:
        """Order the first step that it lacks, if it is up."""
        state, trainer = self._state, self._state.trainer
        step = next((step for step in trainer.steps if step.version == trainer.version + 1), None)
        if not trainer.up or step is None:
            return
        state.training = self._orders.issue(
            TrainBatch,
            -1,
            step=step.step,
            version=step.version,
            installed=step.installed,
            trajectories=step.trajectories,
            start_versions=step.start_versions,
            context_tokens=step.context_tokens,
            checkpoint=self._is_saved(step),
        )

    @property
    def _has_new_batch(self) -> bool:
        """Whether a batch is with it that no version was made of yet."""
        steps = self._state.trainer.steps
        return bool(steps) and steps[-1].version > self._state.trained

    def _is_saved(self, step: Step) -> bool:
        return step.version % self._checkpoint_every == 0 or step.step == self._last_step

    def ended(self, version: int) -> None:
        """A step is done."""
        trainer = self._state.trainer
        self._state.training = -1
        trainer.version = version
        trainer.losses = 0
        if self._is_saved(next(step for step in trainer.steps if step.version == version)):
            trainer.checkpoint = version
            trainer.steps = [step for step in trainer.steps if step.version > version]

    def lost(self, event: TrainerLost) -> bool:
        """Start it again from its checkpoint; False if that incarnation was known to be gone.

        Raises StuckError when it was lost too often without finishing a step.
        """
        trainer = self._state.trainer
        if event.incarnation != trainer.incarnation:
            return False
        trainer.losses += 1
        if trainer.losses > self._most_losses:
            raise StuckError(
                f"the trainer was lost {trainer.losses} times and finished no step between; see why it dies, or raise "
                "policy.recovery.max_trainer_losses"
            )
        self.restart()
        return True

    def restart(self) -> None:
        """Order a new incarnation; a batch that was with the old one waits for it."""
        state, trainer = self._state, self._state.trainer
        self._orders.void(state.training)
        self._orders.void(trainer.order)
        trainer.up = False
        trainer.incarnation += 1
        trainer.version = trainer.checkpoint
        trainer.order = self._orders.issue(
            RestartTrainer, -1, incarnation=trainer.incarnation, version=trainer.checkpoint
        )
        state.training = trainer.order if self._has_new_batch else -1

    def started(self, event: TrainerStarted) -> bool:
        """It is up again; False for a late answer."""
        if self._state.open.pop(event.command_id, None) is None:
            return False
        self._state.trainer.up = True
        return True
