"""Which of the trainer's devices each time-shared engine has.

Ray knows the trainer as their owner. An engine that shares them asks Ray for none: it is put on their node, and sees
those of its ranks alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rollart.domain.errors import CapacityError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Devices on a node."""

    node: str
    """Ray's name of it."""
    devices: tuple[str, ...] = ()
    """GPUs by their numbers on the node; none on CPUs, whose cores are shared as they are."""


def shared_places(ranks: Sequence[Place], sizes: Sequence[int]) -> list[Place]:
    """A place for each engine, in the order of `sizes` (devices of an engine): on one node, and no device twice.

    Raises CapacityError where the ranks lie on nodes in a way that leaves none.
    """
    left: dict[str, list[Place]] = {}
    for rank in ranks:
        left.setdefault(rank.node, []).append(rank)
    places: dict[int, Place] = {}
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        node = next((node for node, here in left.items() if len(here) >= sizes[index]), None)
        if node is None:
            spread = ", ".join(str(len(here)) for here in left.values())
            raise CapacityError(
                f"placement: a time-shared engine needs {sizes[index]} of the trainer's devices on one node; "
                f"left by node: {spread}"
            )
        taken, left[node] = left[node][: sizes[index]], left[node][sizes[index] :]
        places[index] = Place(node=node, devices=tuple(device for rank in taken for device in rank.devices))
    return [places[index] for index in range(len(sizes))]
