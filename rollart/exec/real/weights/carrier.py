"""How a bucket of weights gets from the trainer's process to an engine's host.

A carrier has an end in every process that deals with weights. The trainer puts a bucket in and gets a parcel, which
stands for the bucket; the parcel reaches the engines as a Ray object, and each of them fetches the bucket on its own.
A bucket is the bytes of a safetensors file, a JSON header and raw tensors, so nothing that travels is ever executed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Carrier(Protocol):
    """One way for weights to travel; plain data until it is used, so that it can be sent to other processes."""

    def check(self) -> None:
        """Make sure that it can be used, before anything starts. Raises InputError."""
        ...

    def put(self, bucket: bytes) -> Any:
        """The trainer's end: hand a bucket over, once for all engines; its parcel."""
        ...

    def fetch(self, parcel: Any, path: Path) -> None:
        """The engine's end: write a bucket to a file of this host's memory."""
        ...

    def drop(self, parcels: Sequence[Any]) -> None:
        """The driver's end: nobody needs these buckets any more. `parcels`: references to them."""
        ...

    def close(self) -> None:
        """The driver's end: the run is over."""
        ...


class RayObjects:
    """The parcel is the bucket: Ray keeps it in shared memory and copies it to the node of who asks for it."""

    def check(self) -> None:
        """Ray is there."""

    def put(self, bucket: bytes) -> Any:
        """The bytes as an array, which Ray lets others read without a copy."""
        return np.frombuffer(bucket, dtype=np.uint8)

    def fetch(self, parcel: Any, path: Path) -> None:
        """Write the bytes."""
        path.write_bytes(memoryview(parcel))

    def drop(self, parcels: Sequence[Any]) -> None:
        """Ray drops what nobody refers to."""

    def close(self) -> None:
        """Ray forgets the run."""
