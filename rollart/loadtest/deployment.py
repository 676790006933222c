"""Which engine is under load: model, device, split, precision, and the limits a server would start with."""

from dataclasses import dataclass

from rollart.costs.engine_shape import EngineShape
from rollart.costs.roofline import RooflineEngine
from rollart.domain.device import COMPUTE_PRECISION, Device
from rollart.domain.errors import InputError
from rollart.domain.model import BYTES_PER_QUANTISED_WEIGHT, Model
from rollart.loadtest.expert_ranks import CostsOf, ExpertRanks
from rollart.loadtest.open_loop import LoadedEngine
from rollart.serving import Engine, EngineConfig
from rollart.serving.lockstep import LockstepEngine

_LARGE_DEVICE_BYTES = 70 * 2**30
"""vLLM's servers start with larger limits on devices with at least so much memory, A100 excepted."""
_VLLM_BLOCK_TOKENS = 16
EXCHANGE_EXTRA_S = 71e-6
"""Fitted to half of the one log there is (vLLM 0.19, Qwen3-30B-A3B on two RTX PRO 6000); see docs/engine.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One engine of a model on devices, as a server would run it; None takes the server's default.

    Both schedulers run asynchronously, as vLLM from 0.14 and SGLang from 0.4 do: an iteration is composed while the one
    before it runs.
    """

    model: Model
    device: Device
    tensor_parallel: int = 1
    precision: str | None = None
    """Of the weights; the one the model is published in, if None."""
    kv_dtype: str = "bf16"
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    scheduler: str = "vllm"
    async_scheduling: bool = True
    """Whether an iteration is composed while the one before it runs: vLLM's default from 0.14 on, and SGLang's."""
    costs_of: CostsOf = RooflineEngine
    """Iteration times of an engine of a shape."""
    prefix_tokens: int = 0
    data_parallel: int = 1
    """Ranks with requests of their own; those of a model with experts share them and go in step."""
    expert_parallel: bool = True
    """Whether the experts of such ranks lie whole on one rank each, rather than split over all."""
    exchange_extra_s: float = EXCHANGE_EXTRA_S
    """What one dispatch or combine between such ranks takes beyond a bare collective."""

    @property
    def shape(self) -> EngineShape:
        """The engine as the cost models know it. Raises InputError or CapacityError."""
        batched, seqs = self._limits()
        return EngineShape(
            model=self.model,
            device=self.device,
            tensor_parallel=self.tensor_parallel,
            precision=weight_precision(self.precision or self.model.native_precision),
            kv_dtype="bf16" if self.kv_dtype == "auto" else self.kv_dtype,
            max_num_seqs=seqs,
            max_num_batched_tokens=batched,
        )

    def engines(self, count: int = 1) -> list[LoadedEngine]:
        """So many equal engines, which share one cost model; ranks that do not go in step are engines too."""
        if self.data_parallel > 1 and self.model.experts is not None:
            ranks = ExpertRanks(
                self.shape,
                self.data_parallel,
                self.costs_of,
                spread=self.expert_parallel,
                exchange_extra_s=self.exchange_extra_s,
            )
            config = self._config(ranks.kv_capacity_tokens)
            return [LockstepEngine(config, ranks, self.data_parallel) for _ in range(count)]
        costs = self.costs_of(self.shape)
        config = self._config(costs.kv_capacity_tokens)
        return [Engine(config, costs) for _ in range(count * self.data_parallel)]

    def widened(self) -> str | None:
        """A sentence where the device must widen the weights before it multiplies, for lack of units; else None."""
        precision = self.shape.precision
        compute = COMPUTE_PRECISION[precision]
        if compute in self.device.flops_per_s:
            return None
        return f"{self.device.name} does not multiply in {compute}: {precision} weights are widened to bf16 first"

    def _config(self, kv_tokens: int) -> EngineConfig:
        block = 1 if self.scheduler == "sglang" else _VLLM_BLOCK_TOKENS
        batched, seqs = self._limits()
        return EngineConfig(
            max_num_seqs=seqs,
            max_num_batched_tokens=batched,
            kv_blocks=max(1, kv_tokens // block),
            block_size=block,
            scheduling_lag=1 if self.async_scheduling else 0,
            scheduler=self.scheduler,
            prefix_tokens=self.prefix_tokens,
        )

    def _limits(self) -> tuple[int, int]:
        """Token budget of an iteration and most requests at once."""
        large = self.device.memory_bytes >= _LARGE_DEVICE_BYTES and not self.device.name.startswith("A100")
        batched = self.max_num_batched_tokens or (8192 if large else 2048)
        seqs = self.max_num_seqs or min(1024 if large else 256, batched)
        return batched, seqs


def weight_precision(name: str) -> str:
    """The precision of the cost models that a server's name for it stands for. Raises InputError."""
    found = {"fp4": "mxfp4", "bfloat16": "bf16", "float16": "fp16"}.get(name, name)
    if found not in BYTES_PER_QUANTISED_WEIGHT:
        known = ", ".join(BYTES_PER_QUANTISED_WEIGHT)
        raise InputError(f"precision {name!r} is not known; one of: {known}, fp4")
    return found
