"""What the rest of RollArt asks of a cost model, whichever rung of the ladder of trust it stands on.

The two methods of `EngineCosts` are hot: the engine model calls them about twice per simulated turn. They
return plain floats and must not allocate more than their result.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class LinearPiece(NamedTuple):
    """Iteration time of a fixed batch over its resident context.

    With S resident context tokens an iteration takes `base_s + per_token_s * S`, for S from the value
    that was asked up to and including `limit_tokens` (infinity where nothing changes).
    """

    base_s: float
    per_token_s: float
    limit_tokens: float


class EngineCosts(Protocol):
    """Iteration times and sizes of one engine; an engine may span several devices."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose KV the engine can hold."""

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of KV of one token over the whole engine, as a transfer to another engine moves it."""

    @property
    def weight_bytes(self) -> float:
        """Bytes of the weights one engine holds, over all its devices."""

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        """Iteration of `batch` decode requests (1 or more) that hold `context_tokens` together."""

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Iteration of `batch` decode requests (0 or more) and prefill chunks.

        A chunk (q, c) computes q new tokens over c that are cached.
        """


class TrainingStep(NamedTuple):
    """Seconds of one training step, by cause; the parts add up to `total_s`."""

    forward_s: float
    backward_s: float
    reference_s: float
    behaviour_s: float
    optimizer_s: float
    communication_s: float
    bubble_s: float

    @property
    def total_s(self) -> float:
        """Duration of the step."""
        return sum(self)


class TrainingCosts(Protocol):
    """Duration of a training step over trajectories of given lengths."""

    def step(self, lengths: Sequence[int]) -> TrainingStep:
        """Cost of one step on trajectories of these lengths (prompt and responses together, tokens)."""
