"""The store of weights, from the driver's side: versions, pushed once and pulled by every engine on its own.

What is kept here are references to parcels; the buckets are where the carrier keeps them, so a push costs the same
however many engines there are. The installed version stays until the next but one is pushed: a restarted engine asks
for it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from rollart.domain.commands import PushWeights
from rollart.domain.events import Event, WeightsPushed
from rollart.exec.real.weights.carrier import Carrier
from rollart.modelled.clock import Clock

KEPT_VERSIONS = 3


class Publisher(Protocol):
    """Puts the trainer's weights into the store."""

    async def publish(self) -> tuple[Sequence[Any], list[list[float]]] | None:
        """References to the parcels and log-probs of the probe prompts; None when the trainer died over it."""
        ...


class WeightStore:
    """Carries out PushWeights, and knows where the versions are."""

    def __init__(
        self,
        publisher: Publisher,
        carrier: Carrier,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
        report: Callable[[Event], None],
    ) -> None:
        self._publisher = publisher
        self._carrier = carrier
        self._spawn = spawn
        self._clock = clock
        self._report = report
        self._versions: dict[int, Sequence[Any]] = {}
        self._pushed = asyncio.Condition()
        self.probes: dict[int, list[list[float]]] = {}
        """Version -> log-probs of the probe prompts by the trainer's model."""
        self.busy_s = 0.0

    def push(self, command: PushWeights) -> None:
        """Publish a version; a broadcast goes through the store too, and engines fetch it while they stand still."""
        self._spawn(self._push(command))

    async def _push(self, command: PushWeights) -> None:
        began_s = self._clock.now
        published = await self._publisher.publish()
        self.busy_s += self._clock.now - began_s
        if published is None:
            return
        references, probes = published
        async with self._pushed:
            self._versions[command.version] = references
            self.probes[command.version] = probes
            self._pushed.notify_all()
        self._report(WeightsPushed(command_id=command.id, version=command.version))
        for old in [version for version in self._versions if version <= command.version - KEPT_VERSIONS]:
            self.probes.pop(old, None)
            await asyncio.to_thread(self._carrier.drop, self._versions.pop(old, ()))

    def buckets(self, version: int) -> Sequence[Any]:
        """References to a version that was pushed."""
        return self._versions[version]

    async def pushed(self, version: int) -> Sequence[Any]:
        """References to a version, as soon as it is pushed."""
        async with self._pushed:
            await self._pushed.wait_for(lambda: version in self._versions)
            return self._versions[version]
