"""Moving a trained version onto the engines: fetch, suspend, push, update, resume.

A small machine that waits, in every phase, for the answers of all engines it has asked; an engine that dies meanwhile
is no longer waited for. `Loop` is told when the version is installed and when the engines generate again.
"""

from collections.abc import Callable
from typing import Protocol

from rollart.domain.commands import (
    Command,
    PullWeights,
    PushWeights,
    RestartEngine,
    ResumeEngine,
    SuspendEngine,
    UpdateEngine,
    WeightSource,
)
from rollart.domain.events import Answer, EngineLost, EngineStarted, EngineUpdated
from rollart.domain.plan import Role
from rollart.sched.config import ControllerConfig
from rollart.sched.fleet import Fleet
from rollart.sched.orders import Orders
from rollart.sched.parts.registry import Policy
from rollart.sched.rollout import Rollout
from rollart.sched.state import ControllerState, EngineStatus, SyncPhase

_BLOCKED = (SyncPhase.SUSPENDING, SyncPhase.PUSHING, SyncPhase.UPDATING, SyncPhase.RESUMING)


class Loop(Protocol):
    """Whom the weight update tells about its progress."""

    def installed(self) -> None:
        """Every engine has the new version; none generates yet."""
        ...

    def resumed(self) -> None:
        """The engines generate again."""
        ...

    def offloaded(self) -> None:
        """The time-shared engines have given their memory back."""
        ...


class Weights:
    """The weight update, and the comings and goings of engines."""

    __slots__ = (
        "_config",
        "_fleet",
        "_orders",
        "_recovery",
        "_rollout",
        "_rule",
        "_serving",
        "_state",
        "loop",
    )

    loop: Loop

    def __init__(
        self,
        config: ControllerConfig,
        state: ControllerState,
        policy: Policy,
        orders: Orders,
        fleet: Fleet,
        rollout: Rollout,
    ) -> None:
        self._config = config
        self._state = state
        self._rule = policy.sync
        self._recovery = policy.recovery
        self._orders = orders
        self._fleet = fleet
        self._rollout = rollout
        self._serving = [config.classes[c].role is not Role.JUDGE for c in fleet.classes]

    @property
    def blocked(self) -> bool:
        """Whether engines are between suspend and resume, or give memory back."""
        return self._state.sync.phase in _BLOCKED or self._state.sync.phase is SyncPhase.OFFLOADING

    # The way of a version

    def trained(self, version: int) -> None:
        """A version exists: start to fetch it where that runs beside the rollout."""
        sync = self._state.sync
        sync.newest = version
        if sync.phase in (SyncPhase.FETCHING, SyncPhase.FETCHED) or self.blocked:
            # The trainer did not wait for the version before: that one is installed first.
            return
        sync.target = version
        if not self._rule.prefetch:
            return
        sync.phase = SyncPhase.FETCHING
        sync.pulled.clear()
        self._order_push()

    def _order_push(self) -> None:
        """Publish the target, once the trainer holds it; beside the rollout the engines pull it meanwhile."""
        sync, trainer = self._state.sync, self._state.trainer
        sync.push_due = not trainer.up or trainer.version < sync.target
        if sync.push_due:
            return
        beside = sync.phase is SyncPhase.FETCHING
        # Where no engine is up to receive it, those that start fetch it from the store.
        broadcast = not beside and self._rule.transport == "broadcast" and bool(self._up())
        sync.waiting[self._orders.issue(PushWeights, -1, version=sync.target, broadcast=broadcast)] = -1
        if beside:
            for engine in self._up():
                self._ask(PullWeights, engine, version=sync.target)

    def trainer_lost(self) -> None:
        """The push under way is lost, and with it the pulls that wait for it; it is made again."""
        sync = self._state.sync
        if -1 in sync.waiting.values():
            sync.push_due = True
            for command in sync.waiting:
                self._orders.void(command)
            sync.waiting.clear()

    def trainer_holds(self, version: int) -> None:
        """The trainer holds a version again, after a restart: push what waits for it."""
        sync = self._state.sync
        if sync.push_due and version >= sync.target:
            # A target that it has passed is gone; the version that it holds was made out of it.
            sync.target = version
            self._order_push()

    @property
    def on_its_way(self) -> bool:
        """Whether the new version is still being fetched, and nobody has to wait for it."""
        return self._state.sync.phase is SyncPhase.FETCHING and not self._rule.wait_for_fetch

    def install(self) -> None:
        """Put the target version onto the engines as soon as it is there."""
        sync = self._state.sync
        if sync.phase is SyncPhase.FETCHING or self.blocked:
            sync.wanted = True
            return
        sync.wanted = False
        sync.phase = SyncPhase.SUSPENDING
        if self._rule.suspend:
            if self._rule.in_flight == "interrupt":
                self._rollout.interrupt()
            self._suspend(self._up(), release_memory=False)
        self._advance()

    def offload(self) -> None:
        """Make the time-shared engines give their memory back to the trainer.

        A newcomer among them is caught up with all others at the next update.
        """
        self._state.sync.phase = SyncPhase.OFFLOADING
        for index, engine in enumerate(self._state.engines):
            if engine.status is EngineStatus.CATCHING_UP and self._time_shared(index):
                self._orders.void(engine.order)
                self._join(index)
        self._suspend([index for index in self._up() if self._time_shared(index)], release_memory=True)
        self._advance()

    def answered(self, event: Answer) -> None:
        """An engine (or the store) is ready with what it was asked."""
        sync = self._state.sync
        if self._state.open.pop(event.command_id, None) is None or event.command_id not in sync.waiting:
            return
        engine = sync.waiting.pop(event.command_id)
        if sync.phase is SyncPhase.FETCHING and engine >= 0:
            sync.pulled[engine] = None
        elif sync.phase is SyncPhase.UPDATING:
            self._state.engines[engine].version = sync.target
        self._advance()

    def _advance(self) -> None:
        """Enter the next phase when all answers of this one are there."""
        sync = self._state.sync
        if sync.waiting or sync.push_due:
            return
        steps: dict[SyncPhase, Callable[[], None]] = {
            SyncPhase.FETCHING: self._fetched,
            SyncPhase.SUSPENDING: self._push,
            SyncPhase.PUSHING: self._update,
            SyncPhase.UPDATING: self._updated,
            SyncPhase.RESUMING: self._resumed,
            SyncPhase.OFFLOADING: self._offloaded,
        }
        if sync.phase in steps:
            steps[sync.phase]()

    def _fetched(self) -> None:
        self._state.sync.phase = SyncPhase.FETCHED
        if self._state.sync.wanted:
            self.install()

    def _push(self) -> None:
        sync = self._state.sync
        sync.phase = SyncPhase.PUSHING
        if not self._rule.prefetch:
            self._order_push()
        self._advance()

    def _update(self) -> None:
        sync = self._state.sync
        sync.phase = SyncPhase.UPDATING
        for engine in self._up():
            if engine in sync.pulled:
                source = WeightSource.HOST
            elif self._rule.transport == "broadcast":
                source = WeightSource.BROADCAST
            else:
                source = WeightSource.STORE
            self._ask(UpdateEngine, engine, version=sync.target, source=source)
        self._advance()

    def _updated(self) -> None:
        sync = self._state.sync
        sync.phase = SyncPhase.RESUMING
        sync.pulled.clear()
        sync.unpublished = False
        self._state.installed = sync.target
        self.loop.installed()
        for engine in list(sync.suspended):
            self._ask(ResumeEngine, engine)
        sync.suspended.clear()
        self._advance()

    def _resumed(self) -> None:
        sync = self._state.sync
        sync.phase = SyncPhase.IDLE
        joining, sync.joining = sync.joining, []
        for engine in joining:
            self._catch_up(engine)
        if sync.newest > sync.target:
            self.trained(sync.newest)
        self._rollout.resume_interrupted()
        self.loop.resumed()
        if sync.wanted and sync.phase is SyncPhase.IDLE:
            self.install()

    def _offloaded(self) -> None:
        self._state.sync.phase = SyncPhase.IDLE
        self.loop.offloaded()

    def _up(self) -> list[int]:
        """Engines that serve the rollout and are up."""
        return [
            index
            for index, engine in enumerate(self._state.engines)
            if engine.status is EngineStatus.UP and self._serving[index]
        ]

    def _suspend(self, engines: list[int], *, release_memory: bool) -> None:
        sync = self._state.sync
        for engine in engines:
            if engine not in sync.suspended:
                sync.suspended[engine] = None
                self._ask(SuspendEngine, engine, release_memory=release_memory)

    def _ask(self, kind: type, engine: int, **fields: object) -> None:
        incarnation = self._state.engines[engine].incarnation
        command = self._orders.issue(kind, engine, engine=engine, incarnation=incarnation, **fields)
        self._state.sync.waiting[command] = engine

    # Engines that die and come back

    def lost(self, event: EngineLost) -> None:
        """Take the engine out, send its work elsewhere, and restart it if the recovery rule says so.

        A driver reports the loss of an incarnation again for commands that reached it when it was dead already.
        """
        engine = self._state.engines[event.engine]
        if event.incarnation == engine.incarnation and engine.status is not EngineStatus.REMOVED:
            self._take_out(event.engine)
        self._rollout.engine_lost(event)
        self._advance()

    def _take_out(self, index: int) -> None:
        engine, sync = self._state.engines[index], self._state.sync
        engine.status = EngineStatus.JOINING
        engine.load = 0
        engine.losses += 1
        engine.incarnation += 1
        sync.pulled.pop(index, None)
        sync.suspended.pop(index, None)
        if index in sync.joining:
            sync.joining.remove(index)
        for command in [c for c, e in sync.waiting.items() if e == index]:
            del sync.waiting[command]
            self._orders.void(command)
        self._orders.void(engine.order)
        if self._recovery.restart_engine(engine.losses):
            self._order(RestartEngine, index)
        else:
            engine.status = EngineStatus.REMOVED
        self._fleet.changed(index)

    def started(self, event: EngineStarted) -> None:
        """A restarted engine is up, suspended: give it the weights that the others have."""
        index = self._state.open.pop(event.command_id, None)
        if index is None:
            return
        sync = self._state.sync
        if not self._serving[index]:
            self._welcome(index)
        elif self._time_shared(index) and (self._state.training >= 0 or sync.phase is SyncPhase.OFFLOADING):
            # It has no weights that it would have to give back.
            sync.suspended[index] = None
            self._join(index)
        elif self.blocked or sync.unpublished:
            sync.joining.append(index)
        else:
            self._catch_up(index)

    def updated(self, event: EngineUpdated) -> None:
        """An engine has a version: part of the update under way, or a newcomer that catches up."""
        if event.command_id in self._state.sync.waiting:
            self.answered(event)
            return
        index = self._state.open.pop(event.command_id, None)
        if index is None:
            return
        self._state.engines[index].version = event.version
        if self.blocked:
            self._state.engines[index].status = EngineStatus.JOINING
            self._state.sync.joining.append(index)
        elif event.version != self._state.installed:
            self._catch_up(index)
        else:
            self._welcome(index)

    def _time_shared(self, index: int) -> bool:
        return self._config.classes[self._fleet.classes[index]].time_shared

    def _catch_up(self, index: int) -> None:
        """Let a newcomer install the version that the others have (version 0 is the initial checkpoint)."""
        self._state.engines[index].status = EngineStatus.CATCHING_UP
        self._order(UpdateEngine, index, version=self._state.installed, source=WeightSource.STORE)

    def _order(self, kind: type[Command], index: int, **fields: object) -> None:
        """Order something of a newcomer; if that dies, a late answer must not count for the next incarnation."""
        engine = self._state.engines[index]
        engine.order = self._orders.issue(kind, index, engine=index, incarnation=engine.incarnation, **fields)

    def _welcome(self, index: int) -> None:
        """Resume a newcomer; orders to one engine arrive in order, so it can be given work at once."""
        self._order(ResumeEngine, index)
        self._join(index)

    def _join(self, index: int) -> None:
        self._state.engines[index].status = EngineStatus.UP
        self._fleet.changed(index)
        if not self._state.interrupted:
            self._rollout.route_waiting()
