"""Packs trajectories of unequal lengths into micro-batches of about equal cost.

Best fit says how many micro-batches the token budget asks for. Then the dearest trajectory goes first, each
into the cheapest micro-batch so far; where that has no room, a few more micro-steps are tried, and last the best
fit itself is taken, which keeps the budget but balances less. A trajectory above the budget is alone.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TRIES = 4
_GROWTH = 1.15
"""More micro-steps cost nothing in themselves here, only their imbalance does."""


class Packing(NamedTuple):
    """The micro-batch of each trajectory; `micro_steps * ranks` micro-batches, some of which may be empty."""

    micro_steps: int
    bins: NDArray[np.int64]


def pack(tokens: Sequence[float], costs: Sequence[float], *, ranks: int, budget_tokens: float) -> Packing:
    """Assign trajectories to micro-batches of at most `budget_tokens`, balancing their cost."""
    order = np.argsort(np.asarray(costs), kind="stable")[::-1].tolist()
    fitted, count = _best_fit(tokens, order, budget_tokens)
    least = -(-count // ranks)
    micro_steps = least
    for _ in range(_TRIES):
        bins = _cheapest_first(tokens, costs, order, micro_steps * ranks, budget_tokens)
        if bins is not None:
            return Packing(micro_steps, np.asarray(bins, dtype=np.int64))
        micro_steps = max(micro_steps + 1, int(micro_steps * _GROWTH))
    return Packing(least, np.asarray(fitted, dtype=np.int64))


def _best_fit(tokens: Sequence[float], order: list[int], budget_tokens: float) -> tuple[list[int], int]:
    """Each trajectory into the fullest micro-batch with room for it: the bins, and how many there are."""
    room: list[tuple[float, int]] = []
    bins = [0] * len(order)
    count = 0
    for item in order:
        place = bisect_left(room, (tokens[item], -1))
        if place == len(room):
            left, index = budget_tokens, count
            count += 1
        else:
            left, index = room.pop(place)
        bins[item] = index
        if left > tokens[item]:
            insort(room, (left - tokens[item], index))
    return bins, count


def _cheapest_first(
    tokens: Sequence[float], costs: Sequence[float], order: list[int], count: int, budget_tokens: float
) -> list[int] | None:
    """Each trajectory into the cheapest micro-batch so far: the bins, or None where that has no room."""
    heap = [(0.0, index) for index in range(count)]
    held = [0.0] * count
    bins = [0] * len(order)
    for item in order:
        cost, index = heap[0]
        if held[index] and held[index] + tokens[item] > budget_tokens:
            return None
        heapq.heapreplace(heap, (cost + costs[item], index))
        held[index] += tokens[item]
        bins[item] = index
    return bins
