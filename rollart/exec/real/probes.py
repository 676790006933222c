"""Proof that an engine has the weights that it says it has: log-probs of fixed prompts, there and in the trainer.

Right after an update both compute the same numbers up to rounding, whatever the policy does; a gap beyond that is a
bug in the update, while the gap of sampled tokens also grows with staleness.
"""

from dataclasses import dataclass, field

from rollart.domain.execution import ExecutionSettings
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.tokens import Tokenizer
from rollart.exec.real.weights.store import WeightStore

TEXTS = ("0123456789", "The quick brown dog", "SFFF\nFHFH\nFFFH\nHFFG\n0,0:")


@dataclass(slots=True)
class Gaps:
    """Absolute differences of log-probs, over all tokens of all probes."""

    count: int = 0
    total: float = 0.0
    largest: float = 0.0
    by_version: dict[int, float] = field(default_factory=dict)
    """Version -> largest difference of any engine."""

    def add(self, version: int, gap: float) -> None:
        """Count one token."""
        self.count += 1
        self.total += gap
        self.largest = max(self.largest, gap)
        self.by_version[version] = max(self.by_version.get(version, 0.0), gap)

    @property
    def mean(self) -> float | None:
        """Mean difference; None without any probe."""
        return self.total / self.count if self.count else None


class Probes:
    """Asks every engine after its updates, and compares."""

    def __init__(self, tokenizer: Tokenizer, settings: ExecutionSettings) -> None:
        self.prompts = [tokenizer.observation(text, first=True) for text in TEXTS]
        self.gaps = Gaps()
        self._every = settings.probe_every

    def attach(self, engines: EngineFleet, store: WeightStore) -> None:
        """Wire the probes between engines and store."""
        self._store = store
        self._engines = engines
        engines.resumed = self.resumed
        engines.probed = self.compare

    def resumed(self, engine: int, version: int) -> None:
        """An engine generates again under a version."""
        if self._every and version % self._every == 0 and version in self._store.probes:
            self._engines.probe(engine, version, self.prompts)

    def compare(self, engine: int, version: int, logprobs: list[list[float]]) -> None:
        """An engine has answered."""
        del engine
        expected = self._store.probes.get(version)
        if expected is None:
            return
        for told, right in zip(logprobs, expected, strict=True):
            for one, other in zip(told, right, strict=True):
                self.gaps.add(version, abs(one - other))
