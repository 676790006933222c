"""The `cluster` section: pools, links, environment hosts and the function service."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rollart.scenario.sections.base import COUNT_CEILING, Count, Name, NonNegative, Parallel, Positive, Section

ProtocolName = Literal["rdma", "tcp", "local"]


class LinkRates(Section):
    """How fast a network path is."""

    bandwidth_gbit_per_s: Positive = Field(description="Bandwidth, one direction, shared by its transfers")
    latency_us: NonNegative = Field(default=5.0, description="Latency of a message")
    protocol: ProtocolName = Field(
        default="rdma",
        description="How bulk data travels: `rdma` or `tcp` (a transfer of weights gets the share of the bandwidth "
        "that was measured for it), or `local` (all of it, within one machine)",
    )


class PathRates(LinkRates):
    """How fast a path between pools is."""

    protocol: ProtocolName = Field(default="tcp", description="As in `fabric`")


class LinkSection(PathRates):
    """A path between two pools."""

    between: list[Name] = Field(min_length=2, max_length=2, description="The two pools")


class PoolSection(Section):
    """Devices of one kind on one network."""

    device: str = Field(min_length=1, max_length=64, description="Device kind, of the catalogue or of `devices`")
    count: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="Devices in the pool")
    devices_per_node: Parallel | None = Field(
        default=None, description="Devices of one machine; default: the catalogue's"
    )
    price_per_hour: NonNegative | None = Field(
        default=None, description="Price of one device, in any currency; default: the catalogue's"
    )
    fabric: LinkRates = Field(
        default=LinkRates(bandwidth_gbit_per_s=400.0, latency_us=5.0),
        description="Network between the pool's nodes, per node",
    )


class EnvironmentsSection(Section):
    """CPU hosts that run environments."""

    hosts: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="Hosts")
    cores_per_host: Positive = Field(description="CPU cores of a host")
    image_bandwidth_gbit_per_s: Positive = Field(
        default=10.0, description="Bandwidth of the container image registry, shared by all hosts"
    )
    price_per_core_hour: NonNegative = Field(default=0.0, description="Price of one core")


class ServerlessSection(Section):
    """A function service for rewards."""

    max_concurrency: Count = Field(default=1000, description="Most instances at once")
    cold_start_s: NonNegative = Field(default=1.0, description="Time to start an instance")
    keep_alive_s: NonNegative = Field(default=600.0, description="How long an idle instance stays warm")
    scale_out_per_s: Positive = Field(default=50.0, description="New instances that can start in a second")
    price_per_second: NonNegative = Field(default=0.0, description="Price of a busy instance")


class ClusterSection(Section):
    """Everything a plan can be placed on."""

    pools: dict[Name, PoolSection] = Field(min_length=1, max_length=64, description="Device pools by name")
    links: list[LinkSection] = Field(default=[], max_length=2016, description="Networks between pools")
    default_link: PathRates = Field(
        default=PathRates(bandwidth_gbit_per_s=200.0, latency_us=50.0),
        description="Network of pairs that `links` lacks",
    )
    environments: EnvironmentsSection = Field(description="Hosts of the environments")
    serverless: ServerlessSection = Field(default=ServerlessSection(), description="The function service")


Catalogue = Annotated[dict[str, dict[str, Any]], Field(max_length=COUNT_CEILING)]
"""Further entries in the form of the packaged catalogues."""
