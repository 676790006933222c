"""Weights through a Mooncake store, whose memory belongs to processes of its own (`mooncake_client`).

Buckets so outlive the trainer that has put them there, and none of RollArt's processes lends memory. The parcel of a
bucket is its key and size. Every push has keys of its own, even of a version that was pushed before, since Mooncake
takes a second put under one key for done. Keys begin with the name of the run, whose driver removes them: each
version that nobody needs any more, and what is left at the end, or what a driver that was killed has left. They are
pinned: a store without room refuses a bucket instead of dropping another.
"""

import mmap
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray

from rollart.domain.errors import CapacityError, InputError, RollArtError
from rollart.domain.execution import MooncakeAddresses

KNOCK_S = 10.0
"""Time in which the host of the master must answer; Mooncake itself would try for a minute and a half."""
LOCAL_BUFFER_BYTES = 16 * 2**20
"""Memory that a client keeps for copies; buckets go from and to memory of ours."""


class Key(NamedTuple):
    """What stands for a bucket."""

    name: str
    size_bytes: int


class MooncakeStore:
    """A carrier; each process that uses it becomes a client of the store."""

    def __init__(self, addresses: MooncakeAddresses, run: str) -> None:
        """`run`: what all keys begin with, unlike that of any other run on this store."""
        self._addresses = addresses
        self._run = run
        self._client: Any = None

    def __reduce__(self) -> Any:
        return MooncakeStore, (self._addresses, self._run)

    def check(self) -> None:
        """Put a byte there and remove it, with what an earlier driver has left. Raises InputError or CapacityError."""
        host, _, port = self._addresses.master.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=KNOCK_S):
                pass
        except (OSError, OverflowError) as error:
            raise InputError(f"execution.mooncake.master: nobody answers at {host}:{port}: {error}") from error
        self._remove_all()
        self.put(b"\0")
        self._remove_all()

    def put(self, bucket: bytes) -> Key:
        """Store a bucket under a new key. Raises CapacityError where there is no room."""
        from mooncake.store import ObjectDataType, ReplicateConfig

        client = self._connected()
        pinned = ReplicateConfig()
        pinned.with_hard_pin = True
        pinned.data_type = ObjectDataType.WEIGHT
        key = Key(f"{self._run}/{secrets.token_hex(8)}", len(bucket))
        memory = np.frombuffer(bucket, dtype=np.uint8)
        with _registered(client, memory):
            code = client.put_from(key.name, memory.ctypes.data, key.size_bytes, pinned)
        if code != 0:
            raise CapacityError(
                f"Mooncake store at {self._addresses.master}: {key.size_bytes:,} bytes were not taken (code {code}); "
                "start more `mooncake_client`, or with a larger --global_segment_size"
            )
        return key

    def fetch(self, parcel: Key, path: Path) -> None:
        """Read a bucket straight into the pages of a file. Raises RollArtError where it is gone."""
        client = self._connected()
        with path.open("w+b") as file:
            file.truncate(parcel.size_bytes)
            with mmap.mmap(file.fileno(), parcel.size_bytes) as pages:
                memory = np.frombuffer(pages, dtype=np.uint8)
                with _registered(client, memory):
                    read = client.get_into(parcel.name, memory.ctypes.data, parcel.size_bytes)
                del memory
        if read != parcel.size_bytes:
            raise RollArtError(f"Mooncake store at {self._addresses.master}: {parcel.name} is not there (code {read})")

    def drop(self, parcels: Sequence[Any]) -> None:
        """Remove buckets, also where they have just been read."""
        names = [key.name for key in ray.get(list(parcels))]
        self._connected().batch_remove(names, True)

    def close(self) -> None:
        """Remove what the run has left, and leave the store."""
        if self._client is None:
            return
        with suppress(RollArtError):
            self._remove_all()
        self._client.close()
        self._client = None

    def _remove_all(self) -> None:
        self._connected().remove_by_regex(f"^{self._run}/", True)

    def _connected(self) -> Any:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Any:
        # Read when the package is imported, which else writes twenty lines for each client.
        os.environ.setdefault("MC_LOG_LEVEL", "ERROR")
        try:
            from mooncake.store import MooncakeDistributedStore
        except ImportError as error:
            raise InputError(
                f"execution.weight_transfer: 'mooncake' needs the package and its system libraries: {error}; "
                "see docs/real-workers.md"
            ) from error
        client, where = MooncakeDistributedStore(), self._addresses
        code = client.setup(
            ray.util.get_node_ip_address(),
            where.metadata,
            0,
            LOCAL_BUFFER_BYTES,
            where.protocol,
            where.devices,
            where.master,
        )
        if code != 0:
            raise InputError(f"execution.mooncake: no client of {where.master} by {where.protocol!r} (code {code})")
        return client


@contextmanager
def _registered(client: Any, memory: Any) -> Iterator[None]:
    """Let Mooncake read and write an array's memory meanwhile."""
    code = client.register_buffer(memory.ctypes.data, memory.nbytes)
    if code != 0:
        raise CapacityError(f"Mooncake: {memory.nbytes:,} bytes of memory cannot be registered (code {code})")
    try:
        yield
    finally:
        client.unregister_buffer(memory.ctypes.data)
