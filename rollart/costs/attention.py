"""Attention over the context in one iteration, from an operator's curves: lines for decode, a table for chunks.

Decode of a fixed batch is made of lines between the knots of the operator's curve; knots that a line through their
neighbours meets within one percent are left out. A chunk of q new tokens over c cached ones takes, of the time t
of a whole prompt,

    (t(q + c) - floor) * (1 - (c / (q + c)) ** 2)

and never less than reading the KV of both. Latent attention also expands the cached tokens again for every chunk.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rollart.costs.engine_shape import EngineShape
from rollart.costs.interface import LinearPiece
from rollart.costs.operators.formulas import Numbers
from rollart.costs.operators.interface import Heads, Operators
from rollart.domain.attention import GroupedAttention, LatentAttention

_KNOTS = np.unique(np.round(np.concatenate([[0.0], 2.0 ** np.arange(4, 17.01, 0.5)])))
"""Context tokens per request at which decode attention is asked; beyond the last, its last slope goes on."""
_TOLERANCE = 0.01
_LONGEST_PROMPT = 131072
_STEADY_PROMPT = 4096.0
"""A windowed layer's time per pair is that of a full one at this length."""


class Attention:
    """Seconds of attention over the context, of all layers of one engine."""

    def __init__(self, shape: EngineShape, operators: Operators) -> None:
        self._operators = operators
        self._layers = shape.model.full_layers, shape.model.windowed_layers
        self._window = shape.model.window_tokens or 0
        self.heads = heads_of(shape)
        self._longest = min(shape.model.max_context_tokens or _LONGEST_PROMPT, _LONGEST_PROMPT)
        self._pair_s: list[float] = []
        self._expand_s = _expand_s(shape, operators)
        self._plain = not self._window and not self._expand_s
        self._windowed_pair_s = 0.0
        full, windowed = self._layers
        edge = operators.prefill_s(np.array([1.0, _STEADY_PROMPT]), self.heads)
        self._floor_one_s = float(edge[0])
        self.floor_s = (full + windowed) * self._floor_one_s
        pairs = _STEADY_PROMPT * (_STEADY_PROMPT + 1) / 2
        self._windowed_pair_s = windowed * float(edge[1] - edge[0]) / pairs
        rate = operators.chip.bandwidth
        self._read_s = full * self.heads.kv_token_bytes / rate

    def chunk_s(self, new: int, cached: int) -> float:
        """A chunk of a prompt, beyond the floor of its kernels."""
        return self.chunks_s(((new, cached),))[1]

    def chunks_s(self, chunks: Sequence[tuple[int, int]]) -> tuple[int, float]:
        """New tokens of the chunks, and their seconds beyond the floor of their kernels."""
        pair_s, read_one_s, plain = self._pair_s, self._read_s, self._plain
        new_tokens, seconds = 0, 0.0
        for new, cached in chunks:
            tokens = new + cached
            try:
                chunk_s = pair_s[tokens] * new * (tokens + cached)
            except IndexError:
                pair_s = self._tabulate(tokens)
                chunk_s = pair_s[tokens] * new * (tokens + cached)
            if not plain:
                chunk_s += windowed_pairs(new, cached, self._window) * self._windowed_pair_s + cached * self._expand_s
            read_s = tokens * read_one_s
            seconds += chunk_s if chunk_s > read_s else read_s
            new_tokens += new
        return new_tokens, seconds

    def decode_pieces(self, batch: int) -> list[LinearPiece]:
        """Lines of the seconds of `batch` decode requests over their context together, floor included."""
        full, windowed = self._layers
        knots = np.union1d(_KNOTS, [float(self._window)]) if self._window else _KNOTS
        seconds = full * self._operators.decode_s(batch, knots, self.heads) if full else np.zeros(len(knots))
        if windowed:
            clipped = np.minimum(knots, self._window)
            seconds = seconds + windowed * self._operators.decode_s(batch, clipped, self.heads)
        seconds = np.maximum.accumulate(np.maximum(seconds, self.floor_s))
        return _lines(knots * batch, seconds)

    def _tabulate(self, tokens: int) -> list[float]:
        """Seconds of whole prompts of every length up to a bound, beyond the floor, over the length's square.

        With n = q + c the chunk's share 1 - (c / n)^2 of t(n) is t(n) / n^2 * q * (n + c).
        """
        most = max(self._longest, 2 * tokens)
        lengths = np.arange(most + 1, dtype=float)
        once = self._operators.prefill_s(np.maximum(lengths, 1.0), self.heads) - self._floor_one_s
        whole_s = self._layers[0] * np.maximum.accumulate(np.maximum(once, 0.0))
        self._pair_s = (whole_s / np.maximum(lengths, 1.0) ** 2).tolist()
        return self._pair_s


def _expand_s(shape: EngineShape, operators: Operators) -> float:
    """Per cached token of a chunk: latent attention expands its keys and values again, in all layers."""
    model, tp = shape.model, shape.tensor_parallel
    if not isinstance(model.attention, LatentAttention):
        return 0.0
    matrix = model.attention.expansion
    precision = "bf16" if shape.precision in ("mxfp4", "fp16") else shape.precision
    rows = np.array([_STEADY_PROMPT])
    once = operators.gemm_s(rows, matrix.inputs, matrix.outputs // tp, precision)
    return model.layers * float(once[0]) / _STEADY_PROMPT


def heads_of(shape: EngineShape) -> Heads:
    """Attention of one layer on one device of an engine."""
    model, tp = shape.model, shape.tensor_parallel
    grouped = isinstance(model.attention, GroupedAttention)
    return Heads(
        queries=model.attention.heads // tp,
        kv=max(1, -(-model.attention.kv_heads // tp)),
        dim=model.attention.head_dim if isinstance(model.attention, GroupedAttention) else 0,
        kv_dtype="fp8" if shape.kv_dtype == "fp8" else "bf16",
        kv_token_bytes=model.layer_kv_bytes_per_token(shape.kv_dtype) * shape.kv_share,
        prefill_flops=model.layer_flops_per_pair() / tp,
        decode_flops=0.0 if grouped else model.layer_flops_per_pair(decode=True) / tp,
    )


def windowed_pairs(new: int, cached: int, window: int) -> float:
    """(query, key) pairs of `new` tokens over `cached` ones where each sees at most `window` keys."""
    growing = min(new, max(0, window - cached))
    return growing * (cached + 0.5 * (growing + 1)) + (new - growing) * window


def _lines(contexts: Numbers, seconds: Numbers) -> list[LinearPiece]:
    """Lines through the knots that are needed; each is valid below the next knot, the last without end."""
    kept = _needed(contexts, seconds)
    pieces = []
    for left, right in pairwise(kept):
        slope = float((seconds[right] - seconds[left]) / (contexts[right] - contexts[left]))
        pieces.append(LinearPiece(float(seconds[left] - slope * contexts[left]), slope, float(contexts[right])))
    return [*pieces[:-1], pieces[-1]._replace(limit_tokens=math.inf)]


def _needed(contexts: Sequence[float] | Numbers, seconds: Numbers) -> list[int]:
    kept, last = [0], len(seconds) - 1
    while kept[-1] < last:
        left = kept[-1]
        right = left + 1
        while right < last and _meets(contexts, seconds, left, right + 1):
            right += 1
        kept.append(right)
    return kept


def _meets(contexts: Sequence[float] | Numbers, seconds: Numbers, left: int, right: int) -> bool:
    """Whether the line between two knots passes all between them within the tolerance."""
    xs, ys = np.asarray(contexts)[left : right + 1], seconds[left : right + 1]
    line = ys[0] + (ys[-1] - ys[0]) * (xs - xs[0]) / (xs[-1] - xs[0])
    return bool(np.all(np.abs(line - ys) <= _TOLERANCE * ys))
