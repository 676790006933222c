"""What a driver itself took for a run."""

import resource
import sys
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUse:
    """Time and memory of a driver, with the workers that live in its process."""

    wall_s: float
    events: int
    turns: int
    peak_rss_mb: float

    @property
    def turns_per_s(self) -> float:
        """Turns per second of wall time."""
        return self.turns / self.wall_s

    def as_dict(self) -> dict[str, Any]:
        """All figures by name."""
        return {**asdict(self), "turns_per_s": self.turns_per_s}


def peak_rss_mb() -> float:
    """Largest resident set of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
