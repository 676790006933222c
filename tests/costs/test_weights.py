import pytest

from rollart.catalog.load import devices, models
from rollart.costs import weights
from rollart.domain.cluster import Link, Protocol

MODELS, DEVICES = models(), devices()
BYTES = [MODELS[name].weight_bytes("bf16") for name in ("Qwen3-8B", "Qwen3-14B", "Qwen3-32B")]

# Seconds for 8B, 14B and 32B, from Tables 3 and 4 of arXiv 2512.22560.
TCP = [6.911, 14.437, 29.649]
RDMA = [5.466, 5.817, 9.442]
PUSH = [32.4, 67.8, 127.3]
PULL = [6.2, 16.3, 29.7]


def worst(predicted, seen):
    return max(abs(p / s - 1) for p, s in zip(predicted, seen, strict=True))


def test_bare_transfers_are_near_table_3():
    assert worst([weights.transfer_s(size, weights.TCP_200G) for size in BYTES], TCP) < 0.08
    assert worst([weights.transfer_s(size, weights.RDMA_400G) for size in BYTES], RDMA) < 0.12


def test_pushes_are_near_table_4_and_4_3_to_4_7_times_their_bare_transfer():
    pushes = [weights.push_s(size, weights.TCP_200G) for size in BYTES]
    assert worst(pushes, PUSH) < 0.10
    for size, push in zip(BYTES, pushes, strict=True):
        assert 4.3 < push / weights.transfer_s(size, weights.TCP_200G) < 4.7


def test_pulls_at_the_rate_of_table_3_are_near_table_4():
    pulls = [weights.pull_s(size, weights.TCP_200G) for size in BYTES]
    assert worst(pulls, PULL) < 0.21


def test_sharers_of_a_link_wait_for_each_other():
    link = Link(bandwidth_bytes_per_s=10e9, latency_s=0.5)
    assert weights.transfer_s(20e9, link) == 2.5
    assert weights.pull_s(20e9, link, sharers=4) == 8.5


def test_each_device_loads_its_share_over_its_own_link():
    h800 = DEVICES["H800"]
    assert weights.host_to_device_s(64e9, 4, h800) == pytest.approx(16 / 51.2)
    assert weights.wake_s(64e9, 4, h800) == weights.host_to_device_s(64e9, 4, h800)
    assert weights.offload_s(51.2e9, h800) == pytest.approx(1.0)


def test_gathering_precedes_the_transfer():
    link = Link(bandwidth_bytes_per_s=50e9, latency_s=1e-3)
    assert weights.push_s(100e9, link, gather_bytes_per_s=50e9) == pytest.approx(4.001)
    assert weights.reshard_s(64e9, 8, 8e9) == 1.0


def test_bulk_link_gives_what_table_3_shows_for_the_protocol():
    ethernet = Link(bandwidth_bytes_per_s=25e9, protocol=Protocol.TCP)
    half = Link(bandwidth_bytes_per_s=25e9, latency_s=1.0, protocol=Protocol.RDMA)
    local = Link(bandwidth_bytes_per_s=1e9, latency_s=2.0, protocol=Protocol.LOCAL)
    assert weights.bulk_link(ethernet).bandwidth_bytes_per_s == pytest.approx(2.2e9)
    assert weights.bulk_link(half).bandwidth_bytes_per_s == pytest.approx(6.15e9)
    assert weights.bulk_link(half).latency_s == pytest.approx(5.1)
    assert weights.bulk_link(local) is local


def test_parallel_streams_get_no_more_than_the_link_has():
    ethernet = Link(bandwidth_bytes_per_s=25e9, protocol=Protocol.TCP)
    assert weights.bulk_link(ethernet, streams=4).bandwidth_bytes_per_s == pytest.approx(8.8e9)
    assert weights.bulk_link(ethernet, streams=64).bandwidth_bytes_per_s == pytest.approx(25e9)
