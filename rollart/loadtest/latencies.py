"""Latencies of many requests in a few figures, and the error of simulated ones against measured ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from rollart.loadtest.requests import Latency

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and percentiles of one quantity over requests; None where no request has it."""

    mean: float | None
    p50: float | None
    p90: float | None

    def as_dict(self, scale: float = 1.0) -> dict[str, float | None]:
        """The figures times a scale."""
        figures = {"mean": self.mean, "p50": self.p50, "p90": self.p90}
        return {key: None if value is None else value * scale for key, value in figures.items()}


def spread(seconds: Seconds) -> Spread:
    """Mean, median and 90th percentile (linear between two ranks); values that are not known do not count."""
    known = seconds[~np.isnan(seconds)]
    if not known.size:
        return Spread(mean=None, p50=None, p90=None)
    p50, p90 = np.percentile(known, (50, 90))
    return Spread(mean=float(known.mean()), p50=float(p50), p90=float(p90))


class Quantities:
    """First token (`ttft`), time per output token after it (`tpot`) and end to end (`e2e`) of each request."""

    def __init__(self, latencies: Sequence[Latency]) -> None:
        self.ttft = np.array([met.first_token_s for met in latencies], dtype=np.float64)
        self.e2e = np.array([met.last_token_s for met in latencies], dtype=np.float64)
        gaps = [met.per_token_s for met in latencies]
        self.tpot = np.array([nan if gap is None else gap for gap in gaps], dtype=np.float64)

    def milliseconds(self) -> dict[str, dict[str, float | None]]:
        """The figures of all three, in ms."""
        by_name = {"ttft_ms": self.ttft, "tpot_ms": self.tpot, "e2e_ms": self.e2e}
        return {name: spread(seconds).as_dict(1e3) for name, seconds in by_name.items()}


def error_pct(
    simulated: Quantities, simulated_s: float, measured: Quantities, measured_s: float
) -> dict[str, float | dict[str, float | None] | None]:
    """Signed errors in percent, simulated against measured; `mape` is the mean absolute one over requests."""
    errors: dict[str, float | dict[str, float | None] | None] = {}
    for name in ("ttft", "tpot", "e2e"):
        ours, theirs = getattr(simulated, name), getattr(measured, name)
        figures = spread(ours).as_dict(), spread(theirs).as_dict()
        row = {key: _percent(figures[0][key], figures[1][key]) for key in figures[0]}
        errors[name] = {**row, "mape": _mean_absolute(ours, theirs)}
    errors["duration"] = _percent(simulated_s, measured_s)
    return errors


def _percent(simulated: float | None, measured: float | None) -> float | None:
    if simulated is None or not measured:
        return None
    return 100.0 * (simulated / measured - 1.0)


def _mean_absolute(simulated: Seconds, measured: Seconds) -> float | None:
    usable = ~np.isnan(simulated) & ~np.isnan(measured) & (measured > 0)
    if not usable.any():
        return None
    return float(100.0 * np.abs(simulated[usable] / measured[usable] - 1.0).mean())
