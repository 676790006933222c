"""Advantages by groups: how much better a trajectory did than the others of its prompt."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import fmean, pstdev

from rollart.domain.execution import AdvantageScale, Learning
from rollart.exec.real.trainer.rows import Row


def with_advantages(rows: Sequence[Row], learning: Learning) -> list[Row]:
    """The rows with their advantages: (reward - mean of the group) / max(deviation, floor).

    The floor keeps a group of almost equal rewards from being blown up to full size, which can wreck a policy that
    has learnt already. A group of which one member is left has no baseline, and advantage 0.
    """
    groups: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row.reward)
    means = {group: fmean(rewards) for group, rewards in groups.items()}
    apart = [row.reward - means[row.group] for row in rows]
    if learning.advantage_scale is AdvantageScale.GROUP:
        deviations = _deviations([row.group for row in rows], apart)
    elif learning.advantage_scale is AdvantageScale.TASK:
        deviations = _deviations([row.task for row in rows], apart)
    else:
        deviations = [1.0] * len(rows)
    floor = learning.deviation_floor
    return [
        row.with_advantage(each / max(deviation, floor))
        for row, each, deviation in zip(rows, apart, deviations, strict=True)
    ]


def _deviations(keys: Sequence[Hashable], values: Sequence[float]) -> list[float]:
    """For each value, the standard deviation of all values with the same key."""
    by_key: dict[Hashable, list[float]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        by_key[key].append(value)
    deviations = {key: pstdev(each) for key, each in by_key.items()}
    return [deviations[key] for key in keys]
