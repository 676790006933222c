"""The hardware: pools of devices, the links between them, environment hosts and functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rollart.domain.device import Device


class Protocol(StrEnum):
    """How bulk data travels over a link; it decides how much of the bandwidth one transfer of weights gets."""

    RDMA = "rdma"
    TCP = "tcp"
    LOCAL = "local"
    """Within one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network path that its transfers share equally."""

    bandwidth_bytes_per_s: float
    latency_s: float = 0.0
    protocol: Protocol = Protocol.RDMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Devices of one kind on one network."""

    name: str
    device: Device
    count: int
    devices_per_node: int = 8
    price_per_hour: float = 0.0
    """Price of one device."""
    fabric: Link = field(default_factory=lambda: Link(bandwidth_bytes_per_s=50e9, latency_s=5e-6))
    """Between nodes of the pool, per node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentHosts:
    """CPU hosts that run environments."""

    count: int
    cores_per_host: float
    image_bandwidth_bytes_per_s: float
    """Of the image registry, shared by all hosts."""
    price_per_core_hour: float = 0.0

    @property
    def cores(self) -> float:
        """Cores of all hosts."""
        return self.count * self.cores_per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Serverless:
    """A function service."""

    max_concurrency: int
    cold_start_s: float
    keep_alive_s: float
    """How long an idle instance stays warm."""
    scale_out_per_s: float
    """New instances that can start per second."""
    price_per_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything a plan can be placed on."""

    pools: Mapping[str, Pool]
    links: Mapping[frozenset[str], Link]
    """Between two pools; a pair that is not there uses `default_link`."""
    default_link: Link
    environments: EnvironmentHosts
    serverless: Serverless

    def link(self, a: str, b: str) -> Link:
        """The path from pool `a` to pool `b`; within a pool, its fabric."""
        if a == b:
            return self.pools[a].fabric
        return self.links.get(frozenset((a, b)), self.default_link)
