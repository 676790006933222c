"""A rank of the trainer in a process of its own: a Ray actor."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch
from safetensors.torch import save

from rollart.domain.execution import Learning
from rollart.exec.real.free_port import free_port
from rollart.exec.real.sharing import Place
from rollart.exec.real.startup import telling_why
from rollart.exec.real.trainer.checkpoint import load_checkpoint, save_checkpoint
from rollart.exec.real.trainer.learner import Learner
from rollart.exec.real.trainer.policy import DTYPES, full_weights, load_policy, shard
from rollart.exec.real.trainer.rows import Row
from rollart.exec.real.weights.buckets import buckets
from rollart.exec.real.weights.carrier import Carrier
from rollart.exec.real.weights.members import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSpec:
    """What a rank is told when it starts."""

    folder: str
    dtype: str
    engine_dtype: str
    temperature: float
    tasks: tuple[str, ...]
    allowed: tuple[tuple[int, ...], ...]
    learning: Learning
    steps: int
    token_budget: int
    threads: int
    ranks: int
    bucket_bytes: int
    carrier: Carrier
    """How weights get to the engines."""


class TrainerProcess:
    """Trains, publishes weights and keeps checkpoints; all ranks are called alike, rank 0 answers."""

    def __init__(self, spec: TrainerSpec, rank: int) -> None:
        self._spec = spec
        self._rank = rank
        self._broadcaster: Any = None

    def address(self) -> str:
        """Where the ranks may meet: this rank's host and a free port."""
        return f"tcp://{ray.util.get_node_ip_address()}:{free_port()}"

    def start(self, address: str) -> None:
        """Load the model and meet the other ranks. Raises StartError."""
        with telling_why():
            self._start(address)

    def _start(self, address: str) -> None:
        spec = self._spec
        torch.set_num_threads(spec.threads)
        device = self._device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
        if spec.ranks > 1:
            torch.distributed.init_process_group(
                "nccl" if device.type == "cuda" else "gloo",
                init_method=address,
                rank=self._rank,
                world_size=spec.ranks,
            )
        policy = self._load(device)
        reference = None
        if spec.learning.kl_coefficient:
            reference = self._load(device).eval().requires_grad_(False)
        self._learner = Learner(
            policy,
            spec.tasks,
            spec.learning,
            spec.steps,
            spec.token_budget,
            reference=reference,
            rank=self._rank,
            ranks=spec.ranks,
        )

    def _load(self, device: torch.device) -> Any:
        spec = self._spec
        policy = load_policy(Path(spec.folder), spec.dtype, device, spec.allowed, spec.temperature)
        if spec.ranks > 1:
            shard(policy)
        return policy

    def train(self, rows: list[Row], version: int) -> dict[str, float]:
        """One step on a batch with the weights of `version`; what there is to watch, with the seconds it took."""
        began_s = time.perf_counter()
        self._learner.come()
        told = self._learner.step(rows, version)
        return {**told, "train_s": time.perf_counter() - began_s}

    def probe(self, prompts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probs of prompts' own tokens under the present weights."""
        self._learner.come()
        return self._learner.prompt_logprobs(prompts)

    def export(self) -> Iterator[Any]:
        """The present weights, bucket by bucket, each as the carrier hands it on; nothing on ranks but 0.

        Called as a streaming generator, so that the caller owns the buckets and they outlive this process.
        """
        self._learner.come()
        dtype = DTYPES[self._spec.engine_dtype]
        for bucket in buckets(full_weights(self._learner.policy, dtype), self._spec.bucket_bytes):
            yield self._spec.carrier.put(save(bucket)) if self._rank == 0 else None

    def broadcast(self, members: Sequence[Member]) -> int | None:
        """Send the present weights straight to engines that stand still; bytes for each, None where it failed."""
        # Here, since only this needs vLLM in the trainer.
        from rollart.exec.real.weights.broadcast import Broadcaster, PolicySource

        if self._broadcaster is None:
            source = PolicySource(self._learner.policy, DTYPES[self._spec.engine_dtype], self._device)
            self._broadcaster = Broadcaster(source, self._rank)
        return self._broadcaster.send(members)

    def save(self, folder: str, version: int) -> None:
        """Write a checkpoint."""
        self._learner.come()
        save_checkpoint(self._learner, Path(folder), version, write=self._rank == 0)

    def load(self, folder: str) -> int:
        """Go on from a checkpoint; its version."""
        self._learner.come()
        return load_checkpoint(self._learner, Path(folder))

    def leave(self) -> None:
        """Give the device's memory back until it is asked for something again."""
        self._learner.leave()

    def place(self) -> Place:
        """Where this rank computes."""
        context = ray.get_runtime_context()
        return Place(node=context.get_node_id(), devices=tuple(context.get_accelerator_ids()["GPU"]))

    def pid(self) -> int:
        """The process."""
        return os.getpid()
