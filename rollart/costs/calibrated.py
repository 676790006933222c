"""Cost models times a factor that was measured on the user's own machines (see rollart.planning.calibration)."""

from collections.abc import Sequence

from rollart.costs.interface import EngineCosts, LinearPiece, TrainingCosts, TrainingStep


class CalibratedEngine:
    """An engine whose iterations take `factor` times as long; sizes stay what they are."""

    def __init__(self, costs: EngineCosts, factor: float) -> None:
        self._costs = costs
        self._factor = factor

    @property
    def kv_capacity_tokens(self) -> int:
        """As without calibration."""
        return self._costs.kv_capacity_tokens

    @property
    def kv_bytes_per_token(self) -> float:
        """As without calibration."""
        return self._costs.kv_bytes_per_token

    @property
    def weight_bytes(self) -> float:
        """As without calibration."""
        return self._costs.weight_bytes

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        """The piece, both its constant and its slope scaled."""
        base_s, per_token_s, limit_tokens = self._costs.decode(batch, context_tokens)
        return LinearPiece(base_s * self._factor, per_token_s * self._factor, limit_tokens)

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """The iteration, scaled."""
        return self._costs.mixed_s(batch, context_tokens, chunks) * self._factor


class CalibratedTrainer:
    """A trainer all of whose parts take `factor` times as long."""

    def __init__(self, costs: TrainingCosts, factor: float) -> None:
        self._costs = costs
        self._factor = factor

    def step(self, lengths: Sequence[int]) -> TrainingStep:
        """The step, every part scaled."""
        return TrainingStep(*(part_s * self._factor for part_s in self._costs.step(lengths)))
