"""The store of weights, from the driver's side: versions, pushed once and pulled by every engine on its own.

What is kept here are references to parcels; the buckets are where the carrier keeps them, so a push costs the same
however many engines there are. The installed version stays until the next but one is pushed: a restarted engine asks
for it. Where there are receivers, a broadcast goes straight to them, and the version into the store behind it, for
engines that start later.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from rollart.domain.commands import PushWeights, UpdateEngine
from rollart.domain.events import Event, WeightsPushed
from rollart.exec.real.weights.carrier import Carrier
from rollart.exec.real.weights.members import Broadcast, Member
from rollart.modelled.clock import Clock

KEPT_VERSIONS = 3


class Publisher(Protocol):
    """The trainer, as far as weights go. What is asked for first is done first."""

    async def publish(self) -> tuple[Sequence[Any], list[list[float]]] | None:
        """References to the parcels and log-probs of the probe prompts; None when the trainer died over it."""
        ...

    async def broadcast(self, members: Sequence[Member]) -> Broadcast | None:
        """Send the weights straight to engines that stand still; None when the trainer died over it."""
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
        receivers: Callable[[], Sequence[Member]] | None = None,
    ) -> None:
        """`receivers`: engines that are up and take broadcasts; None: a broadcast goes through the store."""
        self._publisher = publisher
        self._carrier = carrier
        self._spawn = spawn
        self._clock = clock
        self._report = report
        self._receivers = receivers
        self._versions: dict[int, Sequence[Any]] = {}
        self._lost: set[int] = set()
        """Versions that the trainer did not live to put into the store."""
        self._arrived: dict[int, set[tuple[int, int]]] = {}
        """Version -> engines that have it by a broadcast."""
        self._changed = asyncio.Condition()
        self.probes: dict[int, list[list[float]]] = {}
        """Version -> log-probs of the probe prompts by the trainer's model."""
        self.busy_s = 0.0
        self.broadcast_bytes = 0
        self.failed_broadcasts = 0

    def push(self, command: PushWeights) -> None:
        """Publish a version."""
        # What is known of an earlier push of it, by a trainer that has died since, is of other weights.
        self._lost.discard(command.version)
        self._versions.pop(command.version, None)
        self._arrived.pop(command.version, None)
        members = self._receivers() if command.broadcast and self._receivers is not None else ()
        self._spawn(self._broadcast(command, members) if members else self._push(command))

    async def _push(self, command: PushWeights) -> None:
        began_s = self._clock.now
        await self._keep(command.version)
        self.busy_s += self._clock.now - began_s
        if command.version in self._versions:
            self._report(WeightsPushed(command_id=command.id, version=command.version))

    async def _broadcast(self, command: PushWeights, members: Sequence[Member]) -> None:
        began_s = self._clock.now
        # It begins when this waits for the broadcast, so the trainer is asked for that first.
        self._spawn(self._keep(command.version))
        sent = await self._publisher.broadcast(members)
        self.busy_s += self._clock.now - began_s
        if sent is None:
            return
        self.probes[command.version] = sent.probes
        if sent.bytes_each is None:
            self.failed_broadcasts += 1
        else:
            self._arrived[command.version] = {member.identity for member in members}
            self.broadcast_bytes += sent.bytes_each * len(members)
        self._report(WeightsPushed(command_id=command.id, version=command.version))

    async def _keep(self, version: int) -> None:
        """Put a version into the store; those that nobody asks for any more go meanwhile."""
        published = await self._publisher.publish()
        async with self._changed:
            if published is None:
                self._lost.add(version)
            else:
                self._versions[version], self.probes[version] = published
            self._changed.notify_all()
        for old in [kept for kept in self._versions if kept <= version - KEPT_VERSIONS]:
            self.probes.pop(old, None)
            self._arrived.pop(old, None)
            self._spawn(asyncio.to_thread(self._carrier.drop, self._versions.pop(old)))

    def has_arrived(self, command: UpdateEngine) -> bool:
        """Whether the engine has the version by a broadcast."""
        return (command.engine, command.incarnation) in self._arrived.get(command.version, ())

    async def pushed(self, version: int) -> Sequence[Any] | None:
        """References to a version as soon as it is in the store; None where the trainer died before it was."""
        async with self._changed:
            await self._changed.wait_for(lambda: version in self._versions or version in self._lost)
            return self._versions.get(version)
