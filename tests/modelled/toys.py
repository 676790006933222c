"""Small parts of a simulation: linear costs, fixed workloads, and jobs built from them.

Costs are dyadic where a test adds them up, so that sums are exact.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from rollart.catalog.load import models
from rollart.costs.interface import LinearPiece, TrainingStep
from rollart.domain.cluster import Cluster, EnvironmentHosts, Link, Pool, Protocol, Serverless
from rollart.domain.device import Device
from rollart.domain.job import Faults, Job
from rollart.domain.plan import EngineGroup, KvReturn, Placement, Plan, TrainerPlacement
from rollart.domain.task import Task
from rollart.domain.training import Training
from rollart.sched.presets import resolve
from rollart.workload.trajectory import StepOutcome, TrajectorySpec

DEVICE = Device(
    name="toy",
    kind="gpu",
    memory_bytes=80e9,
    memory_bandwidth_bytes_per_s=1e12,
    flops_per_s={"bf16": 1e14},
    device_link_bytes_per_s=1e11,
    host_link_bytes_per_s=1.25e9,
    price_per_hour=1.0,
)
"""80 % of its host link is 1 GB/s."""

MODEL = models()["SmolLM2-135M"]


class ToyCosts:
    """Iterations take `overhead_s`, `token_s` for each prompt token, and what decoding requests and context add."""

    def __init__(
        self,
        *,
        overhead_s: float = 1 / 8,
        token_s: float = 1 / 1024,
        request_s: float = 0.0,
        context_s: float = 0.0,
        weight_bytes: float = 2e9,
        kv_bytes_per_token: float = 1e6,
    ) -> None:
        self.overhead_s = overhead_s
        self.token_s = token_s
        self.request_s = request_s
        self.context_s = context_s
        self.weight_bytes = weight_bytes
        self.kv_bytes_per_token = kv_bytes_per_token
        self.kv_capacity_tokens = 0

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        assert context_tokens >= batch
        return LinearPiece(self.overhead_s + self.request_s * batch, self.context_s, inf)

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        decoding_s = self.request_s * batch + self.context_s * context_tokens
        return self.overhead_s + decoding_s + self.token_s * sum(new for new, _ in chunks)


class ToyTraining:
    """A step that takes `base_s`, and `token_s` for each token."""

    def __init__(self, base_s: float = 4.0, token_s: float = 0.0) -> None:
        self.base_s = base_s
        self.token_s = token_s
        self.batches: list[list[int]] = []

    def step(self, lengths: Sequence[int]) -> TrainingStep:
        self.batches.append(list(lengths))
        return TrainingStep(self.base_s + self.token_s * sum(lengths), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class ToyWorkload:
    """Trajectories made by a function of (task, prompt, member, attempt); remembers what was asked for."""

    def __init__(self, make: Callable[[str, int, int, int], TrajectorySpec]) -> None:
        self._make = make
        self.asked: list[tuple[str, int, int, int]] = []

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        self.asked.append((task, prompt, member, attempt))
        return self._make(task, prompt, member, attempt)


def spec(
    *,
    key: tuple[str, int, int, int] = ("maze", 0, 0, 0),
    prompt_tokens: int = 64,
    outputs: Sequence[int] = (8,),
    observations: int = 16,
    reset_s: float = 1.0,
    reset_outcome: StepOutcome = StepOutcome.OK,
    env_s: Sequence[float] | float = 0.5,
    env_outcome: list[StepOutcome] | None = None,
    reward_s: float = 0.25,
    reward: float = 1.0,
) -> TrajectorySpec:
    """A trajectory; every turn after the first brings `observations` new tokens."""
    turns = len(outputs)
    return TrajectorySpec(
        task=key[0],
        prompt=key[1],
        member=key[2],
        attempt=key[3],
        prompt_tokens=prompt_tokens,
        reset_s=reset_s,
        reset_outcome=reset_outcome,
        new_tokens=[0] + [observations] * (turns - 1),
        kept_tokens=None,
        output_tokens=list(outputs),
        env_s=[env_s] * turns if isinstance(env_s, float | int) else list(env_s),
        env_outcome=env_outcome,
        reward_s=reward_s,
        reward=reward,
    )


def same_for_all(**fields: Any) -> ToyWorkload:
    """A workload of equal trajectories."""
    return ToyWorkload(lambda *key: spec(key=key, **fields))


HOSTS = EnvironmentHosts(count=1, cores_per_host=1e6, image_bandwidth_bytes_per_s=1e9)
WARM = Serverless(max_concurrency=10**6, cold_start_s=0.0, keep_alive_s=1e9, scale_out_per_s=1e9)
"""A service that is never a bottleneck."""
LINK = Link(bandwidth_bytes_per_s=1e9, protocol=Protocol.LOCAL)


def cluster(hosts: EnvironmentHosts = HOSTS, serverless: Serverless = WARM, link: Link = LINK) -> Cluster:
    """Three pools of toy devices: `train`, and for engines `fast` and `cheap`."""
    pools = {
        name: Pool(name=name, device=DEVICE, count=count, fabric=link)
        for name, count in (("train", 4), ("fast", 16), ("cheap", 16))
    }
    return Cluster(pools=pools, links={}, default_link=link, environments=hosts, serverless=serverless)


def engines(name: str = "fast", *, pool: str | None = None, engines: int = 1, **fields: Any) -> EngineGroup:
    """An engine group on the pool of its name."""
    return EngineGroup(name=name, pool=pool or name, engines=engines, tensor_parallel=1, **fields)


def task(name: str = "maze", *, share: float = 1.0, group_size: int = 4, max_turns: int = 100, **fields: Any) -> Task:
    """A task."""
    return Task(name=name, share=share, group_size=group_size, max_turns=max_turns, **fields)


def job(
    *,
    policy: str = "sync+",
    parts: Mapping[str, Mapping[str, Any]] | None = None,
    tasks: Sequence[Task] = (task(),),
    groups: Sequence[EngineGroup] = (engines(),),
    batch_size: int = 8,
    context_limit: int = 4096,
    steps: int = 3,
    slots: int = 1024,
    on: Cluster | None = None,
    faults: Faults | None = None,
    kv_return: KvReturn = KvReturn.RECOMPUTE,
    affinity: Mapping[str, tuple[str, ...]] | None = None,
    seed: int = 0,
) -> Job:
    """A job on toy hardware; engines that are time-shared belong to the pool `train`."""
    placement = Placement(
        engine_groups=tuple(groups),
        trainer=TrainerPlacement(pool="train", devices=4),
        affinity=affinity or {},
        environment_slots=slots,
        kv_return=kv_return,
    )
    return Job(
        name="toy",
        cluster=on or cluster(),
        model=MODEL,
        tasks=tuple(tasks),
        training=Training(batch_size=batch_size, context_limit=context_limit),
        plan=Plan(placement=placement, policy=resolve(policy, parts)),
        faults=faults or Faults(),
        steps=steps,
        warmup_steps=0,
        seed=seed,
    )
