"""The duration of a training step from data sheet and model config.

A micro-batch of trajectories with lengths l costs `a * sum(l) + b * sum(pairs(l))` forward; a step is the sum
over its micro-steps of the slowest rank, times the passes:

    forward 1, backward 2 (+ 1 where activations are computed again), reference 1, behaviour 1

Products are taken as compute-bound. Communication adds what `exposed_share` leaves uncovered.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rollart.costs.interface import TrainingStep
from rollart.costs.packing import pack
from rollart.costs.trainer_network import TrainerNetwork
from rollart.costs.trainer_shape import TrainerShape, check_memory, local_parameters
from rollart.costs.training_assumptions import TrainingAssumptions, training_assumptions_for
from rollart.domain.cluster import Link
from rollart.domain.device import Device
from rollart.domain.errors import InputError
from rollart.domain.model import Model
from rollart.domain.training import Training

_OPTIMIZER_TRAFFIC_BYTES = 30.0
"""Per parameter: read gradient 4, master and moments 12; write master and moments 12, weight 2."""
_WEIGHT_BYTES = 2.0


class RooflineTrainer:
    """Costs of training one model on one pool; see `rollart.costs.interface.TrainingCosts`.

    Raises CapacityError at once where the step would not fit into memory.
    """

    def __init__(
        self,
        *,
        model: Model,
        device: Device,
        shape: TrainerShape,
        training: Training,
        fabric: Link,
        assumptions: TrainingAssumptions | None = None,
    ) -> None:
        taken = assumptions or training_assumptions_for(device)
        shape.check_model(model, device)
        self.shape = shape
        self.training = training
        self.memory = check_memory(model, device, shape, training, taken)
        self._model = model
        self._network = TrainerNetwork(model=model, device=device, shape=shape, fabric=fabric, assumptions=taken)
        rate = device.peak_flops_per_s("bf16") * shape.tp * shape.cp * shape.pp
        self.token_s = _linear_flops(model, shape, taken) / (rate * taken.product_efficiency)
        """Forward seconds per token of a replica."""
        self.pair_s = model.layer_flops_per_pair() / (rate * taken.attention_efficiency)
        """Forward seconds per (query, key) pair of one layer, in a replica."""
        dense, routed = local_parameters(model, shape)
        self._host_copy_s = (dense + routed) * _WEIGHT_BYTES / device.host_link_bytes_per_s
        sharded = self.memory.optimizer_bytes / 12
        bandwidth = device.memory_bandwidth_bytes_per_s * taken.bandwidth_efficiency
        self._optimizer_s = sharded * _OPTIMIZER_TRAFFIC_BYTES / bandwidth

    def step(self, lengths: Sequence[int]) -> TrainingStep:
        """One step on trajectories of these lengths; raises InputError on an empty or impossible batch."""
        tokens = np.asarray(lengths, dtype=np.float64)
        if tokens.ndim != 1 or tokens.size == 0 or not np.all(np.isfinite(tokens)) or tokens.min() < 1:
            raise InputError("training step: lengths must be a non-empty list of token counts of 1 or more")
        if tokens.max() > self.training.context_limit:
            limit = self.training.context_limit
            raise InputError(f"training step: a trajectory of {tokens.max():.0f} tokens exceeds context_limit {limit}")
        micro_tokens, micro_s = self._micro_steps(tokens)
        forward_s = float(micro_s.sum())
        backward_s = forward_s * (3 if self.training.recompute_activations else 2)
        reference_s = forward_s + self._host_copy_s if self.training.reference_pass else 0.0
        behaviour_s = forward_s if self.training.behaviour_pass else 0.0
        passes_s = forward_s + backward_s + behaviour_s + (forward_s if self.training.reference_pass else 0.0)
        return TrainingStep(
            forward_s=forward_s,
            backward_s=backward_s,
            reference_s=reference_s,
            behaviour_s=behaviour_s,
            optimizer_s=self._optimizer_s,
            communication_s=self._network.step_s(micro_tokens, self._exchanges()),
            bubble_s=(self.shape.pp - 1) / len(micro_s) * passes_s,
        )

    def _exchanges(self) -> int:
        """Passes that exchange activations as often as a forward pass does."""
        optional = (
            self.training.recompute_activations,
            self.training.reference_pass,
            self.training.behaviour_pass,
        )
        return 2 + sum(optional)

    def _micro_steps(self, tokens: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Tokens and forward seconds of the slowest rank of each micro-step.

        Micro-batches are dealt to the ranks in order of cost, so those of one micro-step are alike.
        """
        costs = tokens * self.token_s + causal_pairs(self._model, tokens) * self.pair_s
        ranks, budget = self.shape.dp, float(self.training.micro_batch_tokens)
        packing = pack(tokens.tolist(), costs.tolist(), ranks=ranks, budget_tokens=budget)
        count = packing.micro_steps * ranks
        bin_costs = _sums(packing.bins, costs, count)
        bin_tokens = _sums(packing.bins, tokens, count)
        slowest = np.argsort(bin_costs, kind="stable")[::-1][::ranks]
        return bin_tokens[slowest], bin_costs[slowest]


def causal_pairs(model: Model, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """(query, key) pairs of whole trajectories, summed over the layers of a model."""
    full: NDArray[np.float64] = 0.5 * tokens * (tokens + 1)
    if not model.windowed_layers or model.window_tokens is None:
        return model.layers * full
    window = float(model.window_tokens)
    within = np.minimum(tokens, window)
    windowed: NDArray[np.float64] = 0.5 * within * (within + 1) + np.maximum(tokens - window, 0.0) * window
    return model.full_layers * full + model.windowed_layers * windowed


def _sums(bins: NDArray[np.int64], weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    return np.bincount(bins, weights=weights, minlength=count).astype(np.float64)


def _linear_flops(model: Model, shape: TrainerShape, taken: TrainingAssumptions) -> float:
    """Forward operations per token; spread experts wait for the most loaded device."""
    if model.experts is None or shape.ep == 1:
        return model.linear_flops_per_token
    routed = 2.0 * model.expert_layers * model.experts.active * model.expert_parameters
    return model.linear_flops_per_token + routed * (taken.expert_imbalance - 1)
