"""How far a cost model is off on the user's own machines."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightDelays:
    """Seconds that software adds to what moving the weights takes, each 0 or more."""

    push_s: float = 0.0
    """To a push: gathering, cutting into buckets, handing over."""
    pull_s: float = 0.0
    """To the pull of an engine's host."""
    update_s: float = 0.0
    """To installing a version on an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Factors on modelled times, measured in a run; 1 takes the cost model as it is."""

    engines: Mapping[str, float] = field(default_factory=dict)
    """Pool -> factor on the iteration times of its engines; above 0."""
    trainer: float = 1.0
    """Factor on the time of a training step; above 0."""
    weights: WeightDelays = field(default_factory=WeightDelays)
