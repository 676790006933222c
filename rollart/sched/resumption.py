"""A run that goes on after its driver was gone: what survives, what begins again, and in which order it comes back.

Scored trajectories survive, in the buffer, in a batch, or in a step that no checkpoint has yet. Every other trajectory
that had begun begins a new attempt: its environment and its half-made turns are gone. The trainer comes back from its
last checkpoint and does again what that lacks; then its version is published and installed on the engines, which have
been started meanwhile. No failure is counted: nobody is to blame.
"""

from rollart.domain.commands import RestartEngine
from rollart.sched.buffer import Buffer
from rollart.sched.config import ControllerConfig
from rollart.sched.fleet import Fleet
from rollart.sched.loop import TrainingLoop
from rollart.sched.orders import Orders
from rollart.sched.state import ControllerState, EngineStatus, Phase, Sync, SyncPhase, Trajectory


class Resumption:
    """Brings a controller's state back to one in which all workers are gone, and orders them back."""

    __slots__ = ("_buffer", "_fleet", "_loop", "_orders", "_shared", "_state")

    def __init__(
        self,
        config: ControllerConfig,
        state: ControllerState,
        orders: Orders,
        fleet: Fleet,
        buffer: Buffer,
        loop: TrainingLoop,
    ) -> None:
        self._state = state
        self._orders = orders
        self._fleet = fleet
        self._buffer = buffer
        self._loop = loop
        self._shared = any(group.time_shared for group in config.classes)

    def resume(self) -> None:
        """All workers are gone: start again what can go on."""
        state = self._state
        for trajectory in state.trajectories.values():
            if trajectory.phase not in (Phase.QUEUED, Phase.SCORED):
                self._begin_again(trajectory)
        self._forget_workers()
        self._restart_engines()
        self._loop.trainer.restart()
        self._publish_again()
        self._buffer.admit()

    def _begin_again(self, trajectory: Trajectory) -> None:
        trajectory.attempt += 1
        trajectory.turn = trajectory.context = trajectory.reusable = trajectory.shared = trajectory.partial = 0
        trajectory.total_tokens = trajectory.score_failures = 0
        trajectory.truncated = trajectory.has_environment = False
        trajectory.engine = trajectory.incarnation = trajectory.command = -1
        trajectory.prefill_engine = trajectory.prefill_incarnation = -1
        trajectory.phase = Phase.QUEUED
        self._state.retries.push(trajectory.id)

    def _forget_workers(self) -> None:
        state = self._state
        state.open.clear()
        state.held, state.unrouted, state.unscored = [], [], []
        state.active = state.slots_used = 0
        state.interrupted = False

    def _restart_engines(self) -> None:
        for index, engine in enumerate(self._state.engines):
            engine.load = 0
            if engine.status is not EngineStatus.REMOVED:
                engine.status = EngineStatus.JOINING
                engine.incarnation += 1
                engine.order = self._orders.issue(RestartEngine, index, engine=index, incarnation=engine.incarnation)
            self._fleet.changed(index)
        self._fleet.rebuild()

    def _publish_again(self) -> None:
        """The engines get the newest version, unless there is none, or time-shared devices are the trainer's."""
        state = self._state
        state.sync = Sync(target=state.trained, newest=state.trained, unpublished=state.installed > 0)
        if state.trained > 0 and not (self._shared and state.training >= 0):
            state.sync.phase = SyncPhase.PUSHING
            state.sync.push_due = True
        elif state.batch:
            self._loop.resumed()
