"""When iterations end: a run of decode iterations between two changes of the batch.

Iteration i of the run (from 0) takes `base + slope * (tokens + i * batch)` seconds, so the first k take

    elapsed(k) = k * (base + slope * (tokens + batch * (k - 1) / 2))

and the iteration in which a moment falls is the root of a quadratic.
"""

from math import sqrt


def coefficients(base_s: float, per_token_s: float, batch: int, tokens: int) -> tuple[float, float]:
    """`b` and `c` (seconds) of a run's length, elapsed(k) = k * (b + c * k)."""
    slope_s = 0.5 * per_token_s * batch
    return base_s + per_token_s * tokens - slope_s, slope_s


class Step:
    """Iterations that run back to back from `start_s`; one with prompt chunks is a run of one."""

    __slots__ = ("_base_s", "_slope_s", "end_s", "iterations", "start_s")

    def __init__(self) -> None:
        self.start_s = 0.0
        self.end_s = 0.0
        self.iterations = 0
        self._base_s = 0.0
        self._slope_s = 0.0

    def begin(
        self, start_s: float, iterations: int, base_s: float, per_token_s: float, batch: int, tokens: int
    ) -> None:
        """Start `iterations` decode iterations of `batch` requests with `tokens` resident tokens."""
        base, slope = self._base_s, self._slope_s = coefficients(base_s, per_token_s, batch, tokens)
        self.start_s = start_s
        self.iterations = iterations
        self.end_s = start_s + iterations * (base + slope * iterations)

    def boundary_s(self, iterations: int) -> float:
        """When the first `iterations` have ended."""
        return self.start_s + iterations * (self._base_s + self._slope_s * iterations)

    def cut(self, iterations: int) -> None:
        """End the run early; a longer one stays as it is."""
        if iterations < self.iterations:
            self.iterations = iterations
            self.end_s = self.boundary_s(iterations)

    def iterations_past(self, time_s: float) -> int:
        """The least number of iterations that end after `time_s`, at most all of them."""
        most = self.iterations
        gap = time_s - self.start_s
        if most == 1 or gap < 0.0:
            return 1
        base, slope = self._base_s, self._slope_s
        root = base + sqrt(base * base + 4.0 * slope * gap)
        count = int(2.0 * gap / root) + 1 if root > 0.0 else most
        # Rounding may miss by one; the comparison below is the definition.
        count = min(max(count, 1), most)
        while count > 1 and self.boundary_s(count - 1) > time_s:
            count -= 1
        while count < most and self.boundary_s(count) <= time_s:
            count += 1
        return count

    def iterations_until(self, time_s: float) -> int:
        """The least number of iterations, from 1, that end at or after `time_s`, at most all of them."""
        past = self.iterations_past(time_s)
        return past - 1 if past > 1 and self.boundary_s(past - 1) == time_s else past

    def iterations_ended(self, time_s: float) -> int:
        """Iterations that have ended by `time_s`."""
        past = self.iterations_past(time_s)
        return past if self.boundary_s(past) <= time_s else past - 1
