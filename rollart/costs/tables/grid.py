"""Ratios of measured to computed seconds on a grid, and the ratio between and beyond its points.

A table corrects the formula instead of replacing it: the logarithm of measured over computed is interpolated,
linearly in the logarithm of each axis, and beyond an edge the edge's ratio stays. So between rows the formula bends
the answer as the physics does, and beyond them it grows as the formula does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollart.costs.operators.formulas import Numbers


class Axis(NamedTuple):
    """Sorted positive coordinates of a grid along one axis."""

    points: Numbers

    @classmethod
    def of(cls, values: Numbers) -> "Axis":
        """The distinct values of a column."""
        return cls(np.unique(values))

    def places(self, values: Numbers) -> NDArray[np.intp]:
        """Positions of values that are on the axis."""
        return np.searchsorted(self.points, values)

    def covers(self, value: float) -> bool:
        """Whether a value lies within the axis."""
        return bool(self.points[0] <= value <= self.points[-1])

    def bracket(self, value: float) -> tuple[int, int, float]:
        """The points on both sides of a value and the weight of the second; an edge counts twice."""
        last = len(self.points) - 1
        high = int(np.searchsorted(self.points, value))
        if high == 0 or high > last:
            edge = min(high, last)
            return edge, edge, 0.0
        low = high - 1
        below, above = np.log(self.points[low]), np.log(self.points[high])
        return low, high, float((np.log(value) - below) / (above - below))


def fill_last_axis(ratios: Numbers, axis: Axis) -> None:
    """Fill what is missing along the last axis, where at least one point of a row is there."""
    logs = np.log(axis.points)
    for row in ratios.reshape(-1, ratios.shape[-1]):
        known = ~np.isnan(row)
        if known.any() and not known.all():
            row[~known] = np.interp(logs[~known], logs[known], row[known])


def fill_rows(ratios: Numbers, axis: Axis) -> None:
    """Fill rows that are missing as a whole, along the last axis but one, from their neighbours of that axis."""
    logs = np.log(axis.points)
    for plane in ratios.reshape(-1, *ratios.shape[-2:]):
        known = ~np.isnan(plane[:, 0])
        if known.any():
            for index in np.flatnonzero(~known):
                low, high, part = Axis(np.exp(logs[known])).bracket(float(np.exp(logs[index])))
                have = plane[known]
                plane[index] = (1 - part) * have[low] + part * have[high]
