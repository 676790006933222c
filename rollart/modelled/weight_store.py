"""Weights on their way in simulated time: gather and push, pull beside the rollout, load, broadcast, offload.

Durations come from `rollart.costs.weights`. A pull that runs beside its push gets bucket by bucket, so it ends one
bucket after the push at the earliest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rollart.costs import weights as costs
from rollart.domain.calibration import WeightDelays
from rollart.domain.cluster import Link
from rollart.domain.commands import PullWeights, PushWeights, UpdateEngine, WeightSource
from rollart.domain.device import Device
from rollart.domain.events import Event, WeightsPulled, WeightsPushed
from rollart.modelled.clock import Clock

BUCKET_BYTES = 1e9
"""Size of a bucket (the paper's)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSite:
    """Where an engine's weights go."""

    device: Device
    devices: int
    weight_bytes: float
    pull_link: Link
    """From the store to the engine's host, as one bulk transfer gets it."""
    time_shared: bool


class WeightStore:
    """Moves versions from the trainer to the engines."""

    def __init__(
        self,
        sites: Sequence[EngineSite],
        weight_bytes: float,
        link: Link,
        publishers: int,
        delays: WeightDelays,
        clock: Clock,
        report: Callable[[Event], None],
    ) -> None:
        self._sites = sites
        self._delays = delays
        self._weight_bytes = weight_bytes
        self._link = link
        self._gather_bytes_per_s = costs.GATHER_CONVERT_BYTES_PER_S * publishers
        self._clock = clock
        self._report = report
        self._push_ends_s = 0.0
        self._pushing: set[int] = set()
        self.busy_s = 0.0
        self.bytes = 0.0

    def push(self, command: PushWeights) -> None:
        """Publish a version to the store, or straight to the engines that are not on the trainer's own devices."""
        duration_s = moved_bytes = 0.0
        if not command.broadcast or any(not site.time_shared for site in self._sites):
            moved_bytes = self._weight_bytes
            duration_s = costs.push_s(moved_bytes, self._link, self._gather_bytes_per_s) + self._delays.push_s
        self.busy_s += duration_s
        self.bytes += moved_bytes
        self._push_ends_s = self._clock.now + duration_s
        self._pushing.add(command.id)
        self._clock.after(duration_s, self._pushed, command)

    def _pushed(self, command: PushWeights) -> None:
        if command.id in self._pushing:
            self._pushing.remove(command.id)
            self._report(WeightsPushed(command_id=command.id, version=command.version))

    def cut_push(self) -> None:
        """The trainer is gone: what it was pushing never arrives."""
        self._pushing.clear()

    def pull(self, command: PullWeights) -> None:
        """Fetch a version to an engine's host while it is being pushed."""
        site = self._sites[command.engine]
        pull_s = self._pull_s(site)
        last_bucket_s = pull_s * min(1.0, BUCKET_BYTES / site.weight_bytes)
        end_s = max(self._clock.now + pull_s, self._push_ends_s + last_bucket_s)
        self._clock.after(end_s - self._clock.now + self._delays.pull_s, self._pulled, command)

    def _pulled(self, command: PullWeights) -> None:
        self._report(WeightsPulled(command_id=command.id, version=command.version))

    def update_s(self, command: UpdateEngine) -> float:
        """Seconds from the order until a suspended engine has the version installed."""
        return self._install_s(command) + self._delays.update_s

    def _install_s(self, command: UpdateEngine) -> float:
        site = self._sites[command.engine]
        if site.time_shared and command.source is not WeightSource.STORE:
            reshard_s = costs.reshard_s(site.weight_bytes, site.devices, site.device.device_link_bytes_per_s)
            return reshard_s + costs.wake_s(site.weight_bytes, site.devices, site.device)
        if command.source is WeightSource.BROADCAST:
            return site.weight_bytes / site.devices / site.device.memory_bandwidth_bytes_per_s
        load_s = costs.host_to_device_s(site.weight_bytes, site.devices, site.device)
        return load_s + (self._pull_s(site) if command.source is WeightSource.STORE else 0.0)

    def release_s(self, engine: int) -> float:
        """Seconds in which a suspended engine that shall release its memory moves its weights to the host."""
        site = self._sites[engine]
        return costs.offload_s(site.weight_bytes / site.devices, site.device)

    def _pull_s(self, site: EngineSite) -> float:
        return costs.pull_s(site.weight_bytes, site.pull_link)
