"""Iteration times of data-parallel ranks that share their experts, out of the costs of ordinary engines.

    iteration = slowest rank without its experts + experts over the tokens of all ranks + dispatch and combine

The first term is the engine of a twin of the model that has next to no feed-forward part; the second is an engine of
the model whose experts are spread over as many devices, less its own twin. So any cost model can stand behind it.
Dispatch gathers the tokens of all ranks at every rank, combine scatters their sums, once per layer of experts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rollart.costs.assumptions import assumptions_for
from rollart.costs.engine_shape import EngineShape
from rollart.costs.interface import EngineCosts
from rollart.costs.operators.interface import Operators
from rollart.domain.errors import InputError
from rollart.serving.lockstep import RankWork

_ACTIVATION_BYTES = 2.0
_COLLECTIVES = ("all_gather", "reduce_scatter")
"""Of a layer: the inputs, then the outputs."""
_TWIN_WIDTH = 128
"""Of the feed-forward part of a twin: small, and any split divides it. What it costs cancels."""

CostsOf = Callable[[EngineShape], EngineCosts]


class ExpertRanks:
    """Costs of `ranks` copies of attention over one set of experts; see `serving.lockstep.LockstepCosts`.

    `spread` says whether experts lie whole on one rank each, or are split over all. `exchange_extra_s` is what one
    dispatch or combine takes beyond a bare collective of its size.
    Raises InputError for a model without experts or with a split in attention too.
    """

    def __init__(
        self,
        shape: EngineShape,
        ranks: int,
        costs_of: CostsOf,
        *,
        spread: bool = True,
        exchange_extra_s: float = 0.0,
    ) -> None:
        model = shape.model
        if model.experts is None or shape.tensor_parallel != 1:
            raise InputError(
                f"engine of {model.name}: data parallel ranks in step need experts and TP 1, not TP "
                f"{shape.tensor_parallel}; a model without experts runs as replicas"
            )
        twin = replace(model, experts=None, dense_layers=model.layers, dense_width=_TWIN_WIDTH)
        together = replace(shape, tensor_parallel=ranks, expert_parallel=ranks if spread else 1)
        self._alone = costs_of(replace(shape, model=twin))
        self._together = costs_of(together)
        self._twin_together = costs_of(replace(together, model=twin, expert_parallel=1))
        # The experts of a rank are its share; the rest of the weights, small beside them, is taken as split too.
        self.kv_capacity_tokens = self._together.kv_capacity_tokens // ranks
        self._layers = model.expert_layers
        self._message_bytes_per_token = model.hidden * _ACTIVATION_BYTES
        self._exchanges = _Exchanges(self._alone, shape, ranks, exchange_extra_s)
        self._expert_s: dict[int, float] = {}

    def iteration_s(self, ranks: Sequence[RankWork]) -> float:
        """An iteration of all ranks."""
        slowest_s = 0.0
        tokens = 0
        for batch, context, chunks in ranks:
            if batch or chunks:
                tokens += batch + sum(new for new, _ in chunks)
                slowest_s = max(slowest_s, self._alone.mixed_s(batch, context, chunks))
        experts_s = self._expert_s.get(tokens)
        if experts_s is None:
            experts_s = self._expert_s[tokens] = self._experts(tokens)
        return slowest_s + experts_s

    def _experts(self, tokens: int) -> float:
        """All layers of experts of an iteration with so many tokens over all ranks, exchanges included."""
        chunk = [(tokens, 0)]
        compute_s = self._together.mixed_s(0, 0, chunk) - self._twin_together.mixed_s(0, 0, chunk)
        exchange_s = self._exchanges.layer_s(tokens * self._message_bytes_per_token)
        return max(compute_s, 0.0) + self._layers * exchange_s


class _Exchanges:
    """Dispatch and combine of one layer: collectives as the cost model has them, or as the device's link says."""

    def __init__(self, costs: EngineCosts, shape: EngineShape, ranks: int, extra_s: float) -> None:
        self._operators: Operators | None = getattr(costs, "operators", None)
        taken = assumptions_for(shape.device)
        self._sent = (ranks - 1) / ranks / (shape.device.device_link_bytes_per_s * taken.link_efficiency)
        self._latency_s = taken.all_reduce_latency_s
        self._ranks = ranks
        self._extra_s = extra_s

    def layer_s(self, message_bytes: float) -> float:
        """Seconds for a message of so many bytes over all ranks."""
        extra_s = len(_COLLECTIVES) * self._extra_s
        if self._operators is None:
            return extra_s + len(_COLLECTIVES) * (self._latency_s + message_bytes * self._sent)
        size = np.array([message_bytes])
        return extra_s + sum(float(self._operators.collective_s(kind, size, self._ranks)[0]) for kind in _COLLECTIVES)
