"""The cheapest step, or the shortest one under a price of steps: a branch and bound over the duration of a step.

What keeps a step of b seconds keeps all longer ones, so between a and b no site costs less by the hour than it does at
b, and no step of an interval costs less than a times that. Intervals are split, the most promising first, until the
best one found is within the tolerance of all that is left.
"""

import heapq
from dataclasses import dataclass
from itertools import pairwise

from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.sites import Site

_TOLERANCE = 7e-3
"""Relative distance to the bound at which the search ends."""
_FIRST = 1.3
"""Ratio of the durations of neighbours in the grid that the search starts from."""
_TRIED = 3
"""Points of this grid that are solved with whole engines, for a first value to beat."""
_NARROW = 4e-3
"""Relative width of an interval that is not split any more."""
_S_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The best value of the model, and the proof."""

    answer: Answer
    bound: float
    """No plan of any site has a smaller value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is asked for."""

    functions_cost: float
    """Of a step, whatever its duration."""
    longest_s: float
    """No step may take longer."""
    cost_per_step: float
    """No step may cost more."""
    by_duration: bool
    """The shortest step is wanted, not the cheapest."""


def cheapest(sites: list[Site], oracle: Oracle, least_s: float, terms: Terms) -> Cheapest | None:
    """The search, from the shortest step `least_s` that any site can keep; None where nothing meets the terms."""
    search = _Search(oracle, terms)
    grid_s = [least_s]
    while grid_s[-1] < terms.longest_s:
        grid_s.append(min(grid_s[-1] * _FIRST, terms.longest_s))
    if len(grid_s) == 1:
        grid_s = [least_s, least_s]
    for low_s, high_s in pairwise(grid_s):
        for index, site in enumerate(sites):
            search.add(index, site, low_s, high_s, whole=False)
    return search.run(sites)


class _Search:
    def __init__(self, oracle: Oracle, terms: Terms) -> None:
        self._oracle, self._terms = oracle, terms
        self._open: list[tuple[float, int, float, float, bool]] = []
        """Bound, site, interval of durations, and whether its bound is that of whole engines."""
        self._best: Answer | None = None
        self._value = float("inf")

    def run(self, sites: list[Site]) -> Cheapest | None:
        """Split until the best is proven, or time is up."""
        bound = float("inf")
        promising = sorted(self._open, key=lambda one: one[0] * one[3] / one[2])[:_TRIED]
        for _, index, _, high_s, _ in promising:
            found = self._oracle.cheapest(sites[index], high_s, integer=True)
            if found is not None:
                self._take(found)
        while self._open:
            bound, index, low_s, high_s, whole = heapq.heappop(self._open)
            enough = bound >= self._value * (1 - _TOLERANCE)
            if enough or (self._best is not None and self._oracle.left_s <= 0):
                break
            if high_s > low_s * (1 + _NARROW):
                middle_s = (low_s * high_s) ** 0.5
                self.add(index, sites[index], low_s, middle_s, whole=False)
                self.add(index, sites[index], middle_s, high_s, whole=False)
            elif not whole:
                self.add(index, sites[index], low_s, high_s, whole=True)
        if self._best is None:
            return None
        return Cheapest(answer=self._best, bound=min(bound, self._value))

    def add(self, index: int, site: Site, low_s: float, high_s: float, *, whole: bool) -> None:
        """Open an interval of a site, unless nothing in it can be the best."""
        relaxed = self._oracle.cheapest(site, high_s, integer=False)
        if relaxed is None:
            return
        found = self._oracle.cheapest(site, high_s, integer=True) if whole else None
        if whole and found is None:
            return
        least = self._cost(low_s, (found or relaxed).least_price_per_hour)
        if least > self._terms.cost_per_step:
            return
        if found is not None:
            self._take(found)
        value = self._value_of(site, low_s, least)
        if value < self._value:
            heapq.heappush(self._open, (value, index, low_s, high_s, whole))

    def _take(self, found: Answer) -> None:
        cost = self._cost(found.step_s, found.price_per_hour)
        value = self._value_of(found.site, found.step_s, cost)
        if cost <= self._terms.cost_per_step and value < self._value:
            self._best, self._value = found, value

    def _value_of(self, site: Site, step_s: float, cost: float) -> float:
        return site.instance.penalty * (step_s if self._terms.by_duration else cost)

    def _cost(self, step_s: float, price_per_hour: float) -> float:
        return step_s * price_per_hour / _S_PER_HOUR + self._terms.functions_cost
