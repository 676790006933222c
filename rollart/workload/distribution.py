"""Quantiles of a stream of numbers in bounded memory."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

EXACT_VALUES = 1 << 16
"""Up to here values are kept and quantiles are exact (0.5 MB); beyond, they are rounded to 0.5 %."""
_GROWTH = 1.01
_SMALLEST = 1e-9
"""Values nearer to 0 (a nanosecond) count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Count, mean, quantiles and largest of what was seen."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class Distribution:
    """Collects numbers; beyond `EXACT_VALUES` into buckets whose bounds grow by 1 %."""

    def __init__(self) -> None:
        self._exact = array("d")
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.max = -math.inf

    def add(self, value: float) -> None:
        """Take one value in."""
        self.extend((value,))

    def extend(self, values: Sequence[float]) -> None:
        """Take several values in."""
        if not values:
            return
        self.count += len(values)
        self.total += sum(values)
        self.max = max(self.max, *values)
        self._exact.extend(values)
        if len(self._exact) > EXACT_VALUES:
            self._fold()

    def summary(self) -> Summary | None:
        """What was seen so far; None if nothing was. Quantiles interpolate linearly while exact."""
        if not self.count:
            return None
        if not self._buckets:
            p50, p90, p99 = np.quantile(np.array(self._exact), [0.5, 0.9, 0.99]).tolist()
        else:
            self._fold()
            p50, p90, p99 = (self._bucket_quantile(p) for p in (0.5, 0.9, 0.99))
        mean = self.total / self.count
        return Summary(count=self.count, mean=mean, p50=p50, p90=p90, p99=p99, max=self.max)

    def survival(self) -> tuple[list[float], list[float]]:
        """(values rising, share of all that is at least as large)."""
        if not self._buckets:
            values, counts = np.unique(np.array(self._exact), return_counts=True)
            points, sizes = values.tolist(), counts
        else:
            self._fold()
            buckets = sorted(self._buckets)
            points = [min(self.max, _middle(bucket)) for bucket in buckets]
            sizes = np.array([self._buckets[bucket] for bucket in buckets])
        above = np.cumsum(sizes[::-1])[::-1] / max(1, self.count)
        return points, above.tolist()

    def _fold(self) -> None:
        values = np.array(self._exact)
        sizes = np.maximum(np.abs(values), _SMALLEST)
        places = np.floor(np.log(sizes / _SMALLEST) / math.log(_GROWTH)).astype(np.int64)
        # Negative numbers have negative places, so that places rise with values.
        buckets, counts = np.unique(np.where(values < 0.0, -places, places), return_counts=True)
        for bucket, count in zip(buckets.tolist(), counts.tolist(), strict=True):
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        del self._exact[:]

    def _bucket_quantile(self, p: float) -> float:
        rank = p * (self.count - 1)
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen > rank:
                return min(self.max, _middle(bucket))
        return self.max


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    return math.copysign(_SMALLEST * _GROWTH ** (abs(bucket) + 0.5), bucket)
