"""What the iteration asks of its operators, whether a formula or a table answers."""

from typing import NamedTuple, Protocol

from rollart.costs.operators.chip import Chip
from rollart.costs.operators.formulas import Numbers


class Heads(NamedTuple):
    """Attention of one layer on one device."""

    queries: int
    kv: int
    dim: int
    """Of a key; 0 for latent attention, which no table covers."""
    kv_dtype: str
    kv_token_bytes: float
    """Cached bytes of one token."""
    prefill_flops: float
    """Of one (query, key) pair over the heads of this device."""
    decode_flops: float
    """As `prefill_flops`; more for latent attention, which decodes in the latent space."""


class ExpertGroup(NamedTuple):
    """Routed experts of one layer and how they are spread; `width` is of a whole expert."""

    hidden: int
    width: int
    active: int
    experts: int
    tp: int
    ep: int


class Standing(NamedTuple):
    """Where an operator's seconds come from, and how far off they were on shapes that the fit did not see."""

    source: str
    error_pct: float | None
    """Median absolute error; None where nothing was measured."""


class Operators(Protocol):
    """Seconds of single operators on one device; arrays in, arrays of the same shape out."""

    @property
    def chip(self) -> Chip:
        """The device."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Where answers so far lay beyond what was measured, one line each."""

    def gemm_s(self, rows: Numbers, inputs: int, outputs: int, precision: str) -> Numbers:
        """Product of (rows, inputs) by weights (inputs, outputs)."""

    def decode_s(self, batch: int, context: Numbers, heads: Heads) -> Numbers:
        """Attention of `batch` requests, one new token each, over `context` tokens each, from a cold cache."""

    def prefill_s(self, tokens: Numbers, heads: Heads) -> Numbers:
        """Attention of one whole prompt."""

    def experts_s(self, tokens: Numbers, group: ExpertGroup, precision: str) -> Numbers:
        """Routed experts of one layer on the fullest rank; `tokens` over all ranks."""

    def collective_s(self, kind: str, message_bytes: Numbers, devices: int) -> Numbers:
        """all_reduce, all_gather, reduce_scatter or alltoall of a message within a node."""

    def standing(self, operator: str, precision: str) -> Standing:
        """Source and expected error of gemm, decode, prefill, experts or a collective."""
