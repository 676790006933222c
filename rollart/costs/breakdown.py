"""Where the time of one engine iteration goes: its terms, each with its source and expected error."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rollart.costs.iteration import OperatorEngine
from rollart.costs.parts import Part, weight_bytes

_SMALL = "memory traffic and kernel floors (assumed)"
_HOST = "host time of the engine version (a guess unless it was given)"


class Term(NamedTuple):
    """One term of an iteration; a group of equal terms of all layers."""

    name: str
    seconds: float
    source: str
    error_pct: float | None
    """Median absolute error on shapes that were left out; None where nothing was measured."""
    flops: float | None = None
    bytes: float | None = None
    """Operations and bytes of one device, for the roofline; None where they say nothing."""


def terms(engine: OperatorEngine, batch: int, context: int, chunk: int = 0) -> list[Term]:
    """The terms of an iteration of `batch` requests with `context` tokens each and a fresh prompt of `chunk` tokens.

    They add up to the iteration's time, but for the rule that more work never takes less time.
    """
    tokens, requests = batch + chunk, batch + (1 if chunk else 0)
    found = [*_by_part(engine, engine.token_parts, tokens), *_attention(engine, batch, context, chunk)]
    found += _by_part(engine, engine.head_parts, requests)
    host_s = engine.host.iteration_s + requests * engine.host.request_s
    return [*found, Term("host", host_s, _HOST, None)]


def _by_part(engine: OperatorEngine, parts: tuple[Part, ...], count: int) -> Iterator[Term]:
    for part in parts:
        seconds = float(part.seconds(np.array([float(count)]))[0])
        if not part.operator:
            yield Term(part.name, seconds, _SMALL, None)
            continue
        standing = engine.operators.standing(part.operator, part.precision)
        flops = moved = None
        if part.matrix is not None:
            numbers = part.matrix.parameters
            flops = 2.0 * count * numbers * part.layers
            activations = 2.0 * count * (part.matrix.inputs + part.matrix.outputs)
            moved = (numbers * weight_bytes(part.precision) + activations) * part.layers
        yield Term(part.name, seconds, standing.source, standing.error_pct, flops, moved)


def _attention(engine: OperatorEngine, batch: int, context: int, chunk: int) -> Iterator[Term]:
    attention, model = engine.attention, engine.shape.model
    heads, layers = attention.heads, model.layers
    if batch:
        piece = next(piece for piece in attention.decode_pieces(batch) if batch * context < piece.limit_tokens)
        seconds = piece.base_s + piece.per_token_s * batch * context
        standing = engine.operators.standing("decode", heads.kv_dtype)
        seen = batch * (context * model.full_layers + min(context, model.window_tokens or 0) * model.windowed_layers)
        flops = seen * (heads.decode_flops or heads.prefill_flops)
        yield Term("decode attention", seconds, standing.source, standing.error_pct, flops, seen * heads.kv_token_bytes)
    if chunk:
        standing = engine.operators.standing("prefill", heads.kv_dtype)
        seconds = attention.chunk_s(chunk, 0) + (0.0 if batch else attention.floor_s)
        pairs = chunk * (chunk + 1) / 2 * model.full_layers
        moved = layers * chunk * (2 * heads.kv_token_bytes + 4.0 * heads.queries * max(heads.dim, 1))
        yield Term(
            "prefill attention", seconds, standing.source, standing.error_pct, pairs * heads.prefill_flops, moved
        )
