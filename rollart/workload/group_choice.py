"""Chooses whole groups by chance that depends on the group alone, not on what else is in the file.

A group's place in [0, 1) is a hash of (seed, task, group). So a choice needs no second pass and no memory, members
of a group stay together, and a smaller share of the same seed is a part of a larger one.
"""

from hashlib import blake2b

from rollart.workload.trace import TraceTrajectory

_HASH_BITS = 64


def group_place(trajectory: TraceTrajectory, seed: int) -> float:
    """Place of the trajectory's group in [0, 1), uniform over groups."""
    return _place(f"{seed}\0{trajectory.task}\0{trajectory.group}")


def member_place(trajectory: TraceTrajectory, seed: int) -> float:
    """Place of the trajectory within its group in [0, 1), uniform over members."""
    return _place(f"{seed}\0{trajectory.task}\0{trajectory.group}\0{trajectory.member}")


def _place(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=_HASH_BITS // 8).digest(), "big") / 2.0**_HASH_BITS


def in_share(trajectory: TraceTrajectory, share: float, seed: int) -> bool:
    """Whether the trajectory's group is in the first `share` of all groups."""
    return group_place(trajectory, seed) < share
