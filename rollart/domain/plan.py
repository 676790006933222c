"""A plan: placement (which devices do what) and policy (the rules the controller plays by)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Which phases an engine serves."""

    BOTH = "both"
    PREFILL = "prefill"
    DECODE = "decode"
    JUDGE = "judge"
    """A reward model; serves no rollout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGroup:
    """Equal engines on one pool."""

    name: str
    pool: str
    engines: int
    tensor_parallel: int
    expert_parallel: int = 1
    """1: every expert is split; equal to `tensor_parallel`: experts are spread whole."""
    role: Role = Role.BOTH
    model: str | None = None
    """A model of its own for JUDGE engines; None: the policy model."""
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    gpu_memory_utilization: float = 0.9
    block_size: int = 16
    prefix_caching: bool = True
    scheduling_lag: int = 0
    """Iterations between composing a batch and running it; 1 for asynchronous scheduling."""
    time_shared: bool = False
    """The devices also train; engines release their memory while the trainer runs."""

    @property
    def devices(self) -> int:
        """Devices of the whole group."""
        return self.engines * self.tensor_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerPlacement:
    """Where training runs and how it is cut: tensor x pipeline x context x data parallel ranks."""

    pool: str
    devices: int
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    publishers: int = 1
    """Parts of the trainer that gather, convert and push their share of new weights at the same time, each at the rate
    that was measured for a whole trainer of 4 nodes."""

    @property
    def data_parallel(self) -> int:
        """Replicas of the model."""
        return self.devices // (self.tensor_parallel * self.pipeline_parallel * self.context_parallel)


class KvReturn(StrEnum):
    """How a prefill engine gets the tokens that were decoded elsewhere."""

    RECOMPUTE = "recompute"
    TRANSFER = "transfer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which devices do what."""

    engine_groups: tuple[EngineGroup, ...]
    trainer: TrainerPlacement
    affinity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Engine groups that suit a task, equally good; the key `default` is for tasks that are not named.
    The other groups are its fallback. Without any entry, every group suits every task."""
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Task -> suited group -> part of the task's trajectories that a router keeps there, while the group is up.
    A task that is not named is divided by load."""
    environment_slots: int = 1024
    """Environments that may exist at once."""
    kv_return: KvReturn = KvReturn.RECOMPUTE

    @property
    def engines(self) -> tuple[EngineGroup, ...]:
        """The group of every engine, in the order in which engines are numbered."""
        return tuple(group for group in self.engine_groups for _ in range(group.engines))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy by the names of its parts; `rollart.sched.presets` has the published ones.

    `parts` maps a slot (admission, group, staleness, router, sync, interaction, recovery) to a mapping with the
    part's `kind` and its parameters.
    """

    name: str
    parts: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Placement and policy."""

    placement: Placement
    policy: PolicySpec
