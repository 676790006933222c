"""Moving new weights from the trainer to the engines: every stage is a term of its own.

Between clusters the trainer gathers and converts its shards, pushes them once into a store, and each engine pulls
them and loads them into its devices. Inside a cluster they are broadcast. Devices that training and rollout share
offload, reshard and wake instead.

The constants marked *fitted* come from Tables 3 and 4 of the RollArt paper (arXiv 2512.22560): Qwen3-8B, 14B and
32B over 200 Gb Ethernet (TCP) and 400 Gb InfiniBand (RDMA). `docs/costs.md` says how far each is off.
"""

from rollart.domain.cluster import Link, Protocol
from rollart.domain.device import Device

TCP_200G = Link(bandwidth_bytes_per_s=2.2e9)
"""Fitted to Table 3: one transfer over 200 Gb Ethernet moves 2.0-2.4 GB/s whatever its size."""
RDMA_400G = Link(bandwidth_bytes_per_s=12.3e9, latency_s=4.1)
"""Fitted to Table 3: over 400 Gb InfiniBand a fixed 4.1 s (set-up) and then 12.3 GB/s."""
GATHER_CONVERT_BYTES_PER_S = 0.62e9
"""Fitted to Table 4 less Table 3: what the push takes beyond its bare transfer is 0.55-0.67 GB/s."""
HOST_LINK_EFFICIENCY = 0.8
"""Of a device's host link, assumed: large pinned copies."""


_NOMINAL = {
    Protocol.TCP: (Link(bandwidth_bytes_per_s=25e9), TCP_200G),
    Protocol.RDMA: (Link(bandwidth_bytes_per_s=50e9), RDMA_400G),
}
"""Nominal link of Table 3 -> what one transfer got."""


def bulk_link(link: Link, streams: int = 1) -> Link:
    """What a large transfer in parallel streams gets of a link; each gets the share that Table 3 shows for one.

    All of a LOCAL link, and never more than there is.
    """
    if link.protocol is Protocol.LOCAL:
        return link
    nominal, got = _NOMINAL[link.protocol]
    share = got.bandwidth_bytes_per_s / nominal.bandwidth_bytes_per_s
    return Link(
        bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * min(1.0, share * streams),
        latency_s=link.latency_s + got.latency_s,
        protocol=link.protocol,
    )


def transfer_s(moved_bytes: float, link: Link, sharers: int = 1) -> float:
    """One transfer over a link that `sharers` equal transfers share."""
    return link.latency_s + moved_bytes * sharers / link.bandwidth_bytes_per_s


def gather_convert_s(weight_bytes: float, bytes_per_s: float = GATHER_CONVERT_BYTES_PER_S) -> float:
    """The trainer gathers its shards and converts them into the engines' layout."""
    return weight_bytes / bytes_per_s


def push_s(weight_bytes: float, link: Link, gather_bytes_per_s: float = GATHER_CONVERT_BYTES_PER_S) -> float:
    """Gather, convert and send once, to the store or in a pipelined broadcast to the engines.

    One bucket after the other, without overlap of the two stages.
    """
    return gather_convert_s(weight_bytes, gather_bytes_per_s) + transfer_s(weight_bytes, link)


def pull_s(weight_bytes: float, link: Link, sharers: int = 1) -> float:
    """An engine fetches all weights from the store; `sharers` engines share the link."""
    return transfer_s(weight_bytes, link, sharers)


def host_to_device_s(weight_bytes: float, devices: int, device: Device) -> float:
    """An engine loads weights from host memory; each of its devices takes its share over its own link."""
    return weight_bytes / devices / (device.host_link_bytes_per_s * HOST_LINK_EFFICIENCY)


def offload_s(bytes_per_device: float, device: Device) -> float:
    """A shared device moves state (optimiser, gradients, weights or KV) to host memory."""
    return bytes_per_device / (device.host_link_bytes_per_s * HOST_LINK_EFFICIENCY)


def reshard_s(weight_bytes: float, devices: int, link_bytes_per_s: float) -> float:
    """Training shards become engine shards: each device sends and gets about its share of the weights."""
    return weight_bytes / devices / link_bytes_per_s


def wake_s(weight_bytes: float, devices: int, device: Device) -> float:
    """An engine that slept on a shared device gets its weights back from host memory."""
    return host_to_device_s(weight_bytes, devices, device)
