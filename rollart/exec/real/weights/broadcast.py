"""Weights from GPU to GPU: the trainer's end of vLLM's own weight transfer by NCCL.

Rank 0 of the trainer and every worker of every engine are the ranks of one NCCL group. vLLM's trainer engine drives
both sides of an update: it makes the calls to the engines, which must stand still, and broadcasts meanwhile. A group
has fixed members, so a new one is made whenever an engine has come or gone. Where a broadcast fails the trainer goes
on; engines that were in the middle of it are broken, and the next broadcast makes a new group.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import ray
import torch
from ray.exceptions import RayError
from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

from rollart.exec.real.free_port import free_port
from rollart.exec.real.trainer.policy import Policy, full_weights
from rollart.exec.real.weights.members import Member

FAILURES = (RayError, RuntimeError)
"""What comes of an engine that is gone, and of NCCL."""


class PolicySource(WeightSource):
    """The policy's tensors as vLLM asks for them: on the device, in the engines' dtype; gathered by all ranks."""

    def __init__(self, policy: Policy, dtype: torch.dtype, device: torch.device) -> None:
        self._policy = policy
        self._dtype = dtype
        self._device = device
        self._round: Iterator[tuple[str, torch.Tensor]] | None = None

    def metadata(self) -> list[ParamMeta]:
        """Names, dtypes and whole shapes, in the order in which they are sent."""
        parameters = self._policy.model.named_parameters()
        return [ParamMeta(name, self._dtype, tuple(parameter.shape)) for name, parameter in parameters]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        self._round = full_weights(self._policy, self._dtype, self._device)
        return self._round

    def begin(self) -> None:
        """Nothing of the next round has been gathered yet."""
        self._round = None

    def finish(self) -> None:
        """Gather what is left of a round that broke off, since the other ranks gather all of it."""
        for _ in self._round or iter(self):
            pass


class Engines:
    """vLLM's client of the inference side (VLLMWeightSyncClient) for several engines; ranks follow each other."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Make every engine join, each behind the ranks of those before it."""
        offset, calls = init_info["rank_offset"], []
        for member in self._members:
            info = {**init_info, "rank_offset": offset}
            calls.append(member.process.transfer.remote("init_weight_transfer_engine", info))
            offset += member.workers
        ray.get(calls)

    def start_weight_update(self) -> None:
        """Make every engine expect weights."""
        self._all("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Make every engine receive the tensors that are described; returns when all have them."""
        self._all("update_weights", update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Make every engine put them to use; versions are the driver's to set."""
        del weight_version
        self._all("finish_weight_update")

    def _all(self, call: str, info: Any = None) -> None:
        ray.get([member.process.transfer.remote(call, info) for member in self._members])


class Broadcaster:
    """Sends the policy to engines; every rank of the trainer has one and is called alike."""

    def __init__(self, source: PolicySource, rank: int) -> None:
        self._source = source
        self._rank = rank
        self._group: Any = None
        self._members: list[tuple[int, int]] = []

    def send(self, members: Sequence[Member]) -> int | None:
        """Send the present weights; the bytes that each engine got, None where that failed."""
        self._source.begin()
        try:
            self._join(members)
            self._group.send_weights()
        except FAILURES:
            self._leave()
            self._source.finish()
            return None
        return sum(meta.dtype.itemsize * torch.Size(meta.shape).numel() for meta in self._source.metadata())

    def _join(self, members: Sequence[Member]) -> None:
        identities = [member.identity for member in members]
        if identities == self._members:
            return
        self._leave()
        info = NCCLTrainerInitInfo(
            master_address=ray.util.get_node_ip_address(),
            master_port=free_port(),
            world_size=1 + sum(member.workers for member in members),
            rank=self._rank,
        )
        self._group = WeightTransferTrainerFactory.trainer_init(info, client=Engines(members), source=self._source)
        self._members = identities

    def _leave(self) -> None:
        if self._group is not None:
            self._group.shutdown()
        self._group, self._members = None, []
