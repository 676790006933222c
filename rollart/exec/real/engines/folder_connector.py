"""A KV connector of vLLM that hands KV over as files in a folder, which both engines see.

It needs no GPU and no network: prefill and decode engines of one host meet in its memory (/dev/shm). It follows the
protocol of vLLM's other connectors: a request with `do_remote_decode` ends with the parameters of a request with
`do_remote_prefill`. Files are handed over once and named by the request, never found by tokens: KV of older weights
cannot be taken for that of the present ones. Whole blocks are copied, since kernels order what is in a block as they
like; so both engines need the same block size and tensor parallelism.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata, KVConnectorRole
from vllm.v1.request import RequestStatus

COMPLETE = (RequestStatus.FINISHED_STOPPED, RequestStatus.FINISHED_LENGTH_CAPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCopy:
    """Blocks of one request, from or to its file."""

    name: str
    blocks: tuple[int, ...]
    """Ids in the engine's KV cache."""
    first: int = 0
    """Place of the first of them in the file."""


@dataclass(slots=True)
class BlockCopies(KVConnectorMetadata):
    """What the workers copy in one iteration."""

    loads: list[BlockCopy] = field(default_factory=list)
    saves: list[BlockCopy] = field(default_factory=list)


class FolderConnector(KVConnectorBase_V1):
    """One instance beside the scheduler says what to copy, one in each worker copies."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        self._folder = Path(self._kv_transfer_config.get_from_extra_config("folder", None))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._block_size = vllm_config.cache_config.block_size
        self._prefilling: dict[str, Any] = {}
        """Requests whose prompt another engine waits for."""
        self._loads: list[BlockCopy] = []
        self._layers: dict[str, torch.Tensor] = {}

    # Beside the scheduler

    def on_new_request(self, request: Any) -> None:
        """Remember what is to be handed over."""
        if _parameters(request).get("do_remote_decode"):
            self._prefilling[request.request_id] = request

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """All of the prompt but its last token, from which the first new one is sampled here."""
        parameters = _parameters(request)
        if not parameters.get("do_remote_prefill") or not self._file(parameters["name"], 0).is_file():
            return 0, False
        return max(0, request.num_prompt_tokens - 1 - num_computed_tokens), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """The request has its blocks: take over what was prefilled elsewhere, once."""
        parameters = _parameters(request)
        if not parameters.get("do_remote_prefill"):
            return
        parameters["do_remote_prefill"] = False
        if not num_external_tokens:
            self._drop(parameters["name"])
            return
        first = (request.num_prompt_tokens - 1 - num_external_tokens) // self._block_size
        ids = blocks.get_block_ids()[0][first : self._blocks(request)]
        self._loads.append(BlockCopy(name=parameters["name"], blocks=tuple(ids), first=first))

    def build_connector_meta(self, scheduler_output: Any) -> BlockCopies:
        """What to copy in this iteration: prompts that it completes, and those that were taken over."""
        copies = BlockCopies(loads=self._loads)
        self._loads = []
        for request_id, tokens in scheduler_output.num_scheduled_tokens.items():
            request = self._prefilling.get(request_id)
            if request is not None and request.num_computed_tokens + tokens >= request.num_prompt_tokens:
                assert self._kv_cache_manager is not None
                ids = self._kv_cache_manager.get_block_ids(request_id)[0][: self._blocks(request)]
                copies.saves.append(BlockCopy(name=self._name(request), blocks=tuple(ids)))
        return copies

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """The parameters for the decode engine, where this was a prefill; what nobody will fetch is dropped."""
        del block_ids
        parameters = _parameters(request)
        if parameters.get("do_remote_prefill"):
            self._drop(parameters["name"])
        if self._prefilling.pop(request.request_id, None) is None:
            return False, None
        if request.status not in COMPLETE:
            self._drop(self._name(request))
            return False, None
        return False, {"do_remote_prefill": True, "do_remote_decode": False, "name": self._name(request)}

    def _name(self, request: Any) -> str:
        return f"{self._kv_transfer_config.engine_id}-{request.request_id}"

    def _blocks(self, request: Any) -> int:
        """Blocks that hold the prompt."""
        return -(-int(request.num_prompt_tokens) // int(self._block_size))

    def _file(self, name: str, rank: int) -> Path:
        return self._folder / f"{Path(name).name}-{rank}.safetensors"

    def _drop(self, name: str) -> None:
        for rank in range(self._vllm_config.parallel_config.tensor_parallel_size):
            self._file(name, rank).unlink(missing_ok=True)

    # In a worker

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """The KV of each layer; the first dimension counts blocks."""
        self._layers = kv_caches

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Read what was handed over, before the iteration that needs it; a file is read once."""
        del forward_context, kwargs
        for copy in self._copies.loads:
            path = self._file(copy.name, get_tensor_model_parallel_rank())
            with safe_open(path, framework="pt") as file:
                for layer, kv in self._layers.items():
                    kv[self._places(copy, kv)] = file.get_slice(layer)[copy.first :].to(kv.device)
            path.unlink()

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Everything is there before the first layer."""

    def save_kv_layer(self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any) -> None:
        """Everything is written after the last layer."""

    def wait_for_save(self) -> None:
        """Write what this iteration has completed."""
        for copy in self._copies.saves:
            path = self._file(copy.name, get_tensor_model_parallel_rank())
            tensors = {layer: kv[self._places(copy, kv)].cpu().contiguous() for layer, kv in self._layers.items()}
            unfinished = path.with_suffix(".part")
            save_file(tensors, unfinished)
            unfinished.replace(path)

    def _places(self, copy: BlockCopy, kv: torch.Tensor) -> torch.Tensor:
        return torch.tensor(copy.blocks, device=kv.device)

    @property
    def _copies(self) -> BlockCopies:
        metadata = self._get_connector_metadata()
        assert isinstance(metadata, BlockCopies)
        return metadata


def _parameters(request: Any) -> dict[str, Any]:
    return request.kv_transfer_params or {}
