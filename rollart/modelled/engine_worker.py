"""One engine of the serving model in simulated time.

Wakes the engine when it is due and hands its completions on; knows nothing of trajectories. The engine may be woken a
rounding error later than it asked for; `_time` keeps what it is told from going back.
"""

from collections.abc import Callable
from math import inf, nextafter

from rollart.costs.interface import EngineCosts
from rollart.domain.commands import EngineCommand, ResumeEngine, SuspendEngine, UpdateEngine
from rollart.domain.events import EngineResumed, EngineSuspended, EngineUpdated, Event
from rollart.modelled.clock import Clock
from rollart.serving.config import EngineConfig
from rollart.serving.counters import Usage
from rollart.serving.engine import Engine
from rollart.serving.request import Completion, Request

Done = Callable[[Completion], None]
"""A request's payload: whom to tell."""


class EngineWorker:
    """An engine and its incarnation."""

    __slots__ = (
        "_after",
        "_busy_until_s",
        "_clock",
        "_config",
        "_costs",
        "_due",
        "_last_s",
        "_past",
        "_report",
        "_wake",
        "engine",
        "incarnation",
        "index",
        "up",
        "updates",
    )

    def __init__(
        self, index: int, config: EngineConfig, costs: EngineCosts, clock: Clock, report: Callable[[Event], None]
    ) -> None:
        self.index = index
        self.incarnation = 0
        self.up = True
        self.updates = 0
        """Weight updates of all incarnations: KV from before the last one is void."""
        self._config = config
        self._costs = costs
        self._clock = clock
        self._after = clock.after
        self._report = report
        self._wake = self._on_time
        """One bound method for all wake-ups."""
        self.engine = Engine(config, costs)
        self._due = inf
        self._last_s = 0.0
        self._busy_until_s = 0.0
        """End of the last weight update that was ordered."""
        self._past: list[Usage] = []
        """Final counters of earlier incarnations."""

    # Requests

    def submit(self, request: Request, done: Done) -> None:
        """Hand over a request; `done(completion)` is called when it is complete."""
        # Not what is due at this very moment: requests of one moment start together on an engine at rest.
        now = self._catch_up(with_now=False)
        request.payload = done
        self.engine.submit(request, now)
        self._plan()

    def abort(self, request_id: int) -> int:
        """Give up a request; tokens it has made (0 when it is not here any more)."""
        now = self._catch_up()
        if request_id not in self.engine:
            return 0
        made = self.engine.abort(request_id, now)
        self._plan()
        return made

    def import_kv(self, chain: int, tokens: int) -> None:
        """KV of a chain's leading tokens arrives from another engine."""
        self.engine.import_kv(chain, tokens, self._catch_up())

    def __contains__(self, request_id: int) -> bool:
        return request_id in self.engine

    # Commands

    def suspend(self, command: SuspendEngine, release_s: float) -> None:
        """Stop after the running iteration, then take `release_s` to give memory back."""
        now = self._catch_up()
        end_s = self.engine.suspend(now)
        self._plan()
        self._after(max(0.0, end_s - self._clock.now) + release_s, self._suspended, command)

    def _suspended(self, command: SuspendEngine) -> None:
        if self._is_current(command):
            self._report(EngineSuspended(command_id=command.id))

    def update(self, command: UpdateEngine, duration_s: float) -> None:
        """Install new weights, which takes `duration_s` after the update before it."""
        now = self._clock.now
        self._busy_until_s = end_s = max(now, self._busy_until_s) + duration_s
        self._after(end_s - now, self._updated, command)

    def _updated(self, command: UpdateEngine) -> None:
        if self._is_current(command):
            self.engine.update_weights(self._catch_up())
            self.updates += 1
            self._plan()
            self._report(EngineUpdated(command_id=command.id, version=command.version))

    def resume(self, command: ResumeEngine) -> None:
        """Go on."""
        if self._is_current(command):
            self.engine.resume(self._catch_up())
            self._plan()
            self._report(EngineResumed(command_id=command.id))

    def _is_current(self, command: EngineCommand) -> bool:
        return self.up and command.incarnation == self.incarnation

    # Life and death

    def kill(self) -> dict[int, int]:
        """Die; the tokens made of every open request."""
        now = self._catch_up()
        made = dict(self.engine.kill(now))
        self._past.append(self.engine.usage(now))
        self.up = False
        self._due = inf
        return made

    def start(self, incarnation: int) -> None:
        """Come back, empty and suspended."""
        self.incarnation = incarnation
        self._busy_until_s = 0.0
        self.engine = Engine(self._config, self._costs)
        self.engine.suspend(self._time())
        self.up = True

    def usage(self) -> list[Usage]:
        """Counters of all incarnations, the present one last."""
        return [*self._past, self.engine.usage(self._catch_up(with_now=False))] if self.up else self._past

    @property
    def kv_blocks(self) -> int:
        """Capacity of the KV cache."""
        return self._config.kv_blocks

    # Time

    def _time(self) -> float:
        now = self._clock.now
        if now > self._last_s:
            self._last_s = now
        return self._last_s

    def _catch_up(self, *, with_now: bool = True) -> float:
        """Let what was due before this moment, or at it, happen first; the time to tell the engine."""
        now = self._time()
        until_s = now if with_now else nextafter(now, -inf)
        if self.engine.next_wake <= until_s:
            self._complete(self.engine.advance(until_s))
        return now

    def _plan(self) -> None:
        engine = self.engine
        wake_s = engine.next_wake
        if wake_s < engine.quiet_until:
            wake_s = engine.quiet_until
        if wake_s != self._due:
            self._due = wake_s
            if wake_s < inf:
                delay_s = wake_s - self._clock.now
                self._after(delay_s if delay_s > 0.0 else 0.0, self._wake, wake_s)

    def _on_time(self, wake_s: float) -> None:
        if wake_s != self._due:
            return
        self._due = inf
        now = self._time()
        if wake_s > now:
            self._last_s = now = wake_s
        done = self.engine.advance(now)
        self._plan()
        if done:
            self._complete(done)

    def _complete(self, completions: list[Completion]) -> None:
        """Hand on; all of them have left the engine before the first is handled, since that may abort another."""
        for completion in completions:
            completion.payload(completion)
