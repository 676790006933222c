"""Weights through a Mooncake store: a master and its memory on loopback, by TCP."""

import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

import ray

from rollart import api
from rollart.domain.errors import CapacityError, InputError, RollArtError
from rollart.domain.execution import MooncakeAddresses
from rollart.exec.real.weights.mooncake import MooncakeStore

os.environ.setdefault("MC_LOG_LEVEL", "ERROR")
try:
    import mooncake.store  # noqa: F401
except ImportError as missing:
    WHY_NOT = f"Mooncake is not usable here ({missing}): docs/real-workers.md says what it needs"
else:
    WHY_NOT = ""

needs_mooncake = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
MEMORY_MB = 64


def free_ports(count):
    """Ports that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


def store_at(port, run="test"):
    master = f"127.0.0.1:{port}"
    return MooncakeStore(MooncakeAddresses(master=master, metadata="P2PHANDSHAKE", protocol="tcp", devices=""), run)


@pytest.fixture(scope="module")
def port():
    """The master's port of a store with a little memory."""
    rpc, metrics, memory = free_ports(3)
    master = ["mooncake.cli", "--rpc_address=127.0.0.1", f"--rpc_port={rpc}", f"--metrics_port={metrics}"]
    client = [
        "mooncake.cli_client",
        "--host=127.0.0.1",
        f"--port={memory}",
        f"--master_server_address=127.0.0.1:{rpc}",
        "--metadata_server=P2PHANDSHAKE",
        "--protocol=tcp",
        f"--global_segment_size={MEMORY_MB}MB",
        "--local_buffer_size=16MB",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([sys.executable, "-m", *master], **quiet)]
    until_s = time.monotonic() + 60.0
    try:
        _wait(lambda: socket.create_connection(("127.0.0.1", rpc), timeout=1.0).close(), OSError, until_s)
        processes.append(subprocess.Popen([sys.executable, "-m", *client], **quiet))
        store = store_at(rpc, "fixture")
        _wait(store.check, CapacityError, until_s)
        store.close()
        yield rpc
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _wait(attempt, error, until_s):
    while True:
        try:
            attempt()
            return
        except error:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.3)


def test_a_master_that_does_not_answer_is_named():
    (port,) = free_ports(1)
    with pytest.raises(InputError, match=rf"execution\.mooncake\.master: nobody answers at 127\.0\.0\.1:{port}"):
        store_at(port).check()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mooncake", None)
    monkeypatch.setitem(sys.modules, "mooncake.store", None)
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(InputError, match="needs the package"):
        store_at(listening.getsockname()[1]).check()


@needs_mooncake
def test_a_bucket_is_put_once_and_fetched_by_each_client(port, tmp_path):
    trainer, bucket = store_at(port), bytes(range(256)) * 40_000
    key = trainer.put(bucket)
    assert key.size_bytes == 10_240_000
    for number in range(2):
        engine, path = pickle.loads(pickle.dumps(trainer)), tmp_path / str(number)
        engine.fetch(key, path)
        assert path.read_bytes() == bucket
    trainer.close()


@needs_mooncake
def test_what_is_dropped_is_gone_and_the_others_stay(port, tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "get", lambda references: references)
    store = store_at(port)
    old, kept = store.put(b"old"), store.put(b"kept")
    store.fetch(old, tmp_path / "bucket")
    store.drop([old])
    with pytest.raises(RollArtError, match="is not there"):
        store.fetch(old, tmp_path / "bucket")
    store.fetch(kept, tmp_path / "bucket")
    assert (tmp_path / "bucket").read_bytes() == b"kept"
    store.close()


@needs_mooncake
def test_the_same_version_pushed_again_has_its_own_keys(port, tmp_path):
    store = store_at(port)
    first, second = store.put(b"version 3"), store.put(b"version 3 made again")
    assert first.name != second.name
    store.fetch(second, tmp_path / "bucket")
    assert (tmp_path / "bucket").read_bytes() == b"version 3 made again"
    store.close()


@needs_mooncake
def test_a_store_without_room_says_so_and_drops_nothing(port, tmp_path):
    store = store_at(port)
    bucket = bytes(MEMORY_MB * 2**20 * 2 // 5)
    keys = [store.put(bucket), store.put(bucket)]
    with pytest.raises(CapacityError, match=r"bytes were not taken \(code -200\); start more `mooncake_client`"):
        store.put(bucket)
    for key in keys:
        store.fetch(key, tmp_path / "bucket")
    store.close()


@needs_mooncake
def test_a_run_removes_what_its_killed_driver_has_left_and_nothing_of_others(port, tmp_path):
    killed, other = store_at(port, "run-a"), store_at(port, "run-b")
    left, kept = killed.put(b"left"), other.put(b"kept")
    resumed = store_at(port, "run-a")
    resumed.check()
    with pytest.raises(RollArtError, match="is not there"):
        resumed.fetch(left, tmp_path / "bucket")
    resumed.fetch(kept, tmp_path / "bucket")
    for store in (killed, other, resumed):
        store.close()


@needs_mooncake
@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_engines_of_a_run_get_their_weights_from_the_store(port, tmp_path):
    settings = [
        "training.batch_size=32",
        "steps=6",
        "execution.weight_transfer=mooncake",
        f"execution.mooncake={{master: '127.0.0.1:{port}'}}",
    ]
    summary = api.run(api.load_scenario(LAPTOP, settings), out=tmp_path / "run").summary
    assert summary["trajectories"]["trained"] == 6 * 32
    assert 0.0 < summary["logprob_gap"]["max"] < 1e-4
    assert api.check(tmp_path / "run").ok
    looking = store_at(port)
    assert looking._connected().remove_by_regex("^rollart-", True) == 0
    looking.close()
