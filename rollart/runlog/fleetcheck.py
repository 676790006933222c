"""The part of the invariants that concerns engines: who is up, in which incarnation, with which version."""

from collections.abc import Iterable

from rollart.domain.commands import AbortGeneration, Command, EngineCommand, GenerateTurn, RestartEngine, UpdateEngine
from rollart.domain.events import Answer, EngineLost, EngineStarted, EngineUpdated
from rollart.runlog.lifecheck import Breach


class FleetCheck:
    """Follows every engine."""

    def __init__(self, engines: Iterable[int]) -> None:
        """All are up, in incarnation 0 and with version 0."""
        self._incarnation = dict.fromkeys(engines, 0)
        self._version = dict.fromkeys(self._incarnation, 0)
        self._down: set[int] = set()

    def lost(self, event: EngineLost) -> bool:
        """An engine died; False if that incarnation was known to be gone."""
        current = self._current(event.engine)
        if event.incarnation > current:
            raise Breach(f"engine {event.engine} loses incarnation {event.incarnation}, the current one is {current}")
        if event.incarnation < current:
            return False
        self._down.add(event.engine)
        return True

    def all_lost(self) -> None:
        """Every engine is gone."""
        self._down.update(self._incarnation)

    def ordered(self, command: Command) -> None:
        """A command that may go to an engine."""
        if isinstance(command, RestartEngine):
            self._restart(command)
        elif isinstance(command, EngineCommand | GenerateTurn | AbortGeneration):
            self._reachable(command.engine, command.incarnation)
            if isinstance(command, GenerateTurn) and command.prefill_engine in self._down:
                raise Breach(f"command {command.id} needs engine {command.prefill_engine}, which is down")

    def answered(self, event: Answer, command: Command) -> None:
        """A command was answered in time."""
        if isinstance(event, EngineStarted) and isinstance(command, RestartEngine):
            self._down.discard(command.engine)
            self._version[command.engine] = 0
        elif isinstance(event, EngineUpdated) and isinstance(command, UpdateEngine):
            installed = self._version[command.engine]
            if event.version < installed:
                raise Breach(
                    f"engine {command.engine} goes back to version {event.version} from {installed}; "
                    "versions must not fall"
                )
            self._version[command.engine] = event.version

    def _restart(self, command: RestartEngine) -> None:
        current = self._current(command.engine)
        if command.engine not in self._down:
            raise Breach(f"engine {command.engine} is restarted and is not down")
        if command.incarnation <= current:
            raise Breach(f"engine {command.engine} restarts as incarnation {command.incarnation}, it was {current}")
        self._incarnation[command.engine] = command.incarnation

    def _reachable(self, engine: int, incarnation: int) -> None:
        current = self._current(engine)
        if engine in self._down:
            raise Breach(f"an order to engine {engine}, which is down")
        if incarnation != current:
            raise Breach(f"an order to incarnation {incarnation} of engine {engine}, the current one is {current}")

    def _current(self, engine: int) -> int:
        if engine not in self._incarnation:
            raise Breach(f"engine {engine} is not in the header")
        return self._incarnation[engine]
