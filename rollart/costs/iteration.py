"""An engine's iteration time from operators, measured or fitted: the rungs above the roofline.

    iteration = products, experts, small kernels, collectives (tokens) + head, sampling, host (requests) + attention

Everything by tokens and by requests is tabulated on first use, and never falls as they grow: a formula's waves and a
table's noise would otherwise make more work faster.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rollart.costs.assumptions import Assumptions, assumptions_for
from rollart.costs.attention import Attention
from rollart.costs.engine_shape import EngineShape, kv_capacity_tokens
from rollart.costs.host import HostTime
from rollart.costs.interface import LinearPiece
from rollart.costs.operators.formulas import Numbers
from rollart.costs.operators.interface import Operators
from rollart.costs.parts import Part, head_parts, token_parts


class OperatorEngine:
    """Costs of one engine; see `rollart.costs.interface.EngineCosts`.

    Raises CapacityError where the model does not fit, InputError where an operator has no figures.
    """

    def __init__(
        self, shape: EngineShape, operators: Operators, host: HostTime, assumptions: Assumptions | None = None
    ) -> None:
        taken = assumptions or assumptions_for(shape.device)
        self.shape = shape
        self.operators = operators
        self.host = host
        self.kv_capacity_tokens = kv_capacity_tokens(shape, taken)
        self.kv_bytes_per_token = shape.model.kv_bytes_per_token(shape.kv_dtype)
        self.weight_bytes = shape.weight_bytes
        self.token_parts = tuple(token_parts(shape, operators, taken))
        self.head_parts = tuple(head_parts(shape, operators, taken))
        self.attention = Attention(shape, operators)
        self._chunks_s = self.attention.chunks_s
        self._attention_floor_s = self.attention.floor_s
        self._linear_s: list[float] = []
        self._head_s: list[float] = []
        self._decode: dict[int, tuple[list[int], list[LinearPiece]]] = {}
        self._attend: dict[int, tuple[list[int], list[LinearPiece]]] = {}

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        """Iteration of decode requests alone."""
        found = self._decode.get(batch)
        if found is None:
            found = self._decode[batch] = self._decode_lines(batch)
        limits, pieces = found
        return pieces[bisect_right(limits, context_tokens)]

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Iteration of decode requests and prefill chunks; equals `decode` where there are no chunks."""
        tokens, seconds = self._chunks_s(chunks)
        if batch:
            found = self._attend.get(batch)
            if found is None:
                found = self._attend[batch] = self._attention_lines(batch)
            limits, pieces = found
            base_s, per_token_s, _ = pieces[bisect_right(limits, context_tokens)]
            seconds += base_s + per_token_s * context_tokens
            tokens += batch
        else:
            seconds += self._attention_floor_s
        requests = batch + len(chunks)
        try:
            return seconds + self._linear_s[tokens] + self._head_s[requests]
        except IndexError:
            self._tabulate(tokens, requests)
            return seconds + self._linear_s[tokens] + self._head_s[requests]

    def _attention_lines(self, batch: int) -> tuple[list[int], list[LinearPiece]]:
        """Lines, and where each but the last ends; whole numbers, since a search among them is faster."""
        pieces = self.attention.decode_pieces(batch)
        return [int(piece.limit_tokens) for piece in pieces[:-1]], pieces

    def _decode_lines(self, batch: int) -> tuple[list[int], list[LinearPiece]]:
        self._tabulate(batch, batch)
        fixed_s = self._linear_s[batch] + self._head_s[batch]
        limits, pieces = self._attention_lines(batch)
        return limits, [piece._replace(base_s=piece.base_s + fixed_s) for piece in pieces]

    def _tabulate(self, tokens: int, requests: int) -> None:
        """Make the tables long enough for this many tokens and requests."""
        if tokens >= len(self._linear_s):
            self._linear_s = _rising(self.token_parts, max(self.shape.max_num_batched_tokens, 2 * tokens))
        if requests >= len(self._head_s):
            most = max(self.shape.max_num_seqs, 2 * requests)
            self._head_s = _rising(self.head_parts, most, self._host_s)

    def _host_s(self, requests: Numbers) -> Numbers:
        return self.host.iteration_s + requests * self.host.request_s


def _rising(parts: Iterable[Part], most: int, further: Callable[[Numbers], Numbers] | None = None) -> list[float]:
    """Sum of parts by count from 0 to `most`, made to never fall."""
    counts = np.maximum(np.arange(most + 1, dtype=float), 1.0)
    total = further(counts) if further else np.zeros(most + 1)
    for part in parts:
        total = total + part.seconds(counts)
    seconds: list[float] = np.maximum.accumulate(total).tolist()
    return seconds
