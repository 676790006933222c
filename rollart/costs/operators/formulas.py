"""The compact model: seconds of one operator as a formula of a few fitted coefficients.

Each formula is a kernel's floor plus a blend of what the arithmetic and what the memory would take alone:

    seconds = floor + (compute ** q + memory ** q) ** (1 / q),   q = 1 + blend

A large q is a sharp roofline, q = 1 no overlap at all. The coefficients are efficiencies against the peaks of the data
sheet, so those of one device can stand in for its relatives. All arguments may be NumPy arrays.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollart.costs.operators.chip import WIDTHS, Chip

Numbers = NDArray[np.float64]
_TILE = 128.0
"""Rows and columns of the output that one multiprocessor works on at a time."""
_STRAINED_ROWS = 4096.0
"""Rows at which half of the slow-down under load is reached (seen on L40S)."""
_WARM_UP_TO = 1.25
"""KV that is read again and again is found in the cache up to this part of its size (seen on H100 and RTX PRO 6000)."""


class GemmFit(NamedTuple):
    """Coefficients of a dense product."""

    floor_s: float
    compute: float
    """Reached part of the peak."""
    bandwidth: float
    """Reached part of the memory bandwidth."""
    blend: float
    wave: float
    """How much of the idle part of the last wave of tiles is lost: 1 all of it, 0 none (kernels that split the sum)."""
    strain: float
    """Slow-down of the arithmetic with very many rows, where clocks fall under load."""
    pad_rows: float
    """Rows of arithmetic that even one row costs."""
    quantise: float
    """Reached part of the memory bandwidth where inputs are first brought from 16 bits to fewer, by a kernel before."""
    row_s: float
    """What that kernel takes for each row, whatever its length."""
    launch_s: float = 0.0
    """Of the measurement, whose kernels the host starts one by one: nothing is faster. Captured graphs have none."""


class DecodeFit(NamedTuple):
    """Coefficients of attention of one new token per request."""

    floor_s: float
    bandwidth: float
    blend: float
    warm: float
    """Gain of bandwidth where the KV of the measurement stays in the cache; an engine never finds it there."""
    request_s: float
    """Per request and query head, whatever its context."""
    pad_tokens: float
    """Context tokens that even one token costs."""


class PrefillFit(NamedTuple):
    """Coefficients of attention of whole prompts."""

    floor_s: float
    compute: float
    bandwidth: float
    blend: float
    wave: float
    """How much of the idle part of the last wave of query tiles is lost."""


class ExpertFit(NamedTuple):
    """Coefficients of a layer's routed experts."""

    floor_s: float
    compute: float
    bandwidth: float
    blend: float
    pad_rows: float
    """Rows of arithmetic per visited expert that fill its last tile."""
    skew: float
    """Exponent of the mean visits per expert; below 1 a few experts take most tokens and fewer are read."""
    hot: float
    """Exponent of the number of ranks: load of the fullest rank over the mean."""
    spread_s: float = 0.0
    """Added to the floor where experts are spread over ranks: kernels that map them."""
    uneven: float = 0.0
    """Squared coefficient of variation of how likely experts are (as a gamma distribution): their visits are then
    negative binomial; 0 where all are equally likely."""


class CollectiveFit(NamedTuple):
    """Coefficients of one collective over a number of devices."""

    latency_s: float
    link: float
    """Reached part of the link's bandwidth."""
    blend: float


class AllReduceFit(NamedTuple):
    """Coefficients of an all-reduce over a number of devices, by the ways to do it; the fastest is taken.

    Each way has a fixed time and a reached part of the link's bandwidth.
    """

    once_s: float
    once_link: float
    """Each device reads the whole message of every other one."""
    twice_s: float
    twice_link: float
    """Each device sums its share, then all read the sums: two rounds, fewer bytes."""
    large_s: float
    large_link: float
    """As `twice`, in the library for large messages (NCCL), which starts later; above 1 where the switch sums."""


def blended(first: Any, second: Any, blend: float) -> Any:
    """The blend of two times that overlap in part; scaled so that a high power does not underflow."""
    most = np.maximum(first, second)
    least = np.minimum(first, second)
    power = 1.0 + blend
    return most * (1.0 + (least / np.maximum(most, 1e-30)) ** power) ** (1.0 / power)


def gemm_s(
    fit: GemmFit, chip: Chip, precision: str, rows: Any, inputs: Any, outputs: Any, *, launched: bool = False
) -> Any:
    """Product of (rows, inputs) by (inputs, outputs).

    `launched` is for comparing with a measurement whose kernels the host starts one by one.
    """
    width = WIDTHS[precision]
    moved = inputs * outputs * width.weight_bytes + rows * (inputs * width.input_bytes + outputs * 2.0)
    waves = np.ceil(rows / _TILE) * np.ceil(outputs / _TILE) / chip.multiprocessors
    whole = np.ceil(waves)
    compute = 2.0 * (rows + fit.pad_rows) * inputs * outputs / (chip.peak(precision) * fit.compute)
    compute = compute * (whole / waves) ** fit.wave
    compute = compute * (1.0 + fit.strain * rows / (rows + _STRAINED_ROWS))
    product_s = blended(compute, moved / (chip.bandwidth * fit.bandwidth), fit.blend)
    if width.input_bytes == 2.0:
        return fit.floor_s + product_s
    quantise_s = rows * (fit.row_s + inputs * (2.0 + width.input_bytes) / (chip.bandwidth * fit.quantise))
    seconds = fit.floor_s + product_s + quantise_s
    return np.maximum(seconds, fit.launch_s) if launched else seconds


def decode_s(
    fit: DecodeFit, chip: Chip, batch: Any, context: Any, heads: Any, kv_token_bytes: Any, *, warm: bool
) -> Any:
    """Attention of `batch` requests with `context` tokens each; `kv_token_bytes` of one layer on one device.

    `warm` is for comparing with a measurement that reads the same KV again and again.
    """
    moved = batch * (context + fit.pad_tokens) * kv_token_bytes
    rate = chip.bandwidth * fit.bandwidth
    gain = 1.0 + fit.warm / (1.0 + (moved / (_WARM_UP_TO * chip.l2_bytes)) ** 8) if warm else 1.0
    return fit.floor_s + blended(batch * heads * fit.request_s, moved / (rate * gain), fit.blend)


def prefill_pairs(tokens: Any, window: Any) -> Any:
    """(query, key) pairs under the causal mask, each query seeing at most `window` keys (infinity: all)."""
    seen = np.minimum(tokens, window)
    return seen * (seen + 1.0) / 2.0 + (tokens - seen) * seen


def prefill_s(
    fit: PrefillFit,
    chip: Chip,
    batch: Any,
    tokens: Any,
    heads: Any,
    flops_per_pair: Any,
    token_bytes: Any,
    window: Any = np.inf,
) -> Any:
    """Attention of `batch` prompts of `tokens` tokens; operations per pair over all heads, bytes moved per token."""
    tiles = batch * heads * np.ceil(tokens / _TILE) / chip.multiprocessors
    whole = np.ceil(tiles)
    compute = batch * prefill_pairs(tokens, window) * flops_per_pair / (chip.device.flops_per_s["bf16"] * fit.compute)
    compute = compute * (1.0 + fit.wave * (whole - tiles) / tiles)
    memory = batch * tokens * token_bytes / (chip.bandwidth * fit.bandwidth)
    return fit.floor_s + blended(compute, memory, fit.blend)


def visited_share(visits: Any, uneven: float) -> Any:
    """Part of the experts that get a token where each gets so many in the mean; see `ExpertFit.uneven`."""
    if not uneven:
        return -np.expm1(-visits)
    return -np.expm1(-np.log1p(visits * uneven) / uneven)


def experts_s(
    fit: ExpertFit,
    chip: Chip,
    precision: str,
    tokens: Any,
    *,
    hidden: Any,
    width: Any,
    active: Any,
    experts: Any,
    tp: Any,
    ep: Any,
) -> Any:
    """Routed experts of one layer on the fullest of `ep` ranks, each expert split over `tp` devices."""
    kind = WIDTHS[precision]
    local = experts / ep
    visits = np.minimum(tokens * active / ep * ep**fit.hot, tokens * np.minimum(active, local))
    read = local * visited_share((visits / local) ** fit.skew, fit.uneven)
    read = np.minimum(np.maximum(read, 1.0), np.maximum(visits, 1.0))
    numbers = 3.0 * hidden * width / tp
    compute = 2.0 * numbers * (visits + fit.pad_rows * read) / (chip.peak(precision) * fit.compute)
    moved = read * numbers * kind.weight_bytes + visits * (hidden + 3.0 * width / tp) * 2.0
    floor_s = fit.floor_s + fit.spread_s * (np.asarray(ep) > 1)
    return floor_s + blended(compute, moved / (chip.bandwidth * fit.bandwidth), fit.blend)


BYTES_ON_THE_LINK = {
    "all_reduce": lambda devices: 2.0 * (devices - 1) / devices,
    "all_gather": lambda devices: (devices - 1) / devices,
    "reduce_scatter": lambda devices: (devices - 1) / devices,
    "alltoall": lambda devices: (devices - 1) / devices,
}
"""Bytes that each device sends per byte of the message, as a ring does it."""


def all_reduce_s(fit: AllReduceFit, chip: Chip, message_bytes: Any, devices: int) -> Any:
    """One all-reduce of a message by the fastest way."""
    whole = message_bytes * (devices - 1.0) / chip.link
    shares = message_bytes * BYTES_ON_THE_LINK["all_reduce"](devices) / chip.link
    once = fit.once_s + whole / fit.once_link
    twice = fit.twice_s + shares / fit.twice_link
    return np.minimum(np.minimum(once, twice), fit.large_s + shares / fit.large_link)


def collective_s(fit: CollectiveFit, chip: Chip, kind: str, message_bytes: Any, devices: int) -> Any:
    """One collective of a message (the whole of it, over all ranks), other than an all-reduce."""
    sent = message_bytes * BYTES_ON_THE_LINK[kind](devices)
    return blended(fit.latency_s, sent / (chip.link * fit.link), fit.blend)
