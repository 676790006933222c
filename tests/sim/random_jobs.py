"""Random small jobs and workloads: everything that can go wrong goes wrong often."""

import random
from dataclasses import dataclass, replace

from rollart.domain.cluster import EnvironmentHosts, Link, Protocol, Serverless
from rollart.domain.job import Faults, Job, Preemption
from rollart.domain.plan import EngineGroup, KvReturn, Role
from rollart.domain.task import EnvironmentNeeds, RewardKind, RewardNeeds, Task
from rollart.sched.presets import PRESETS
from rollart.workload.trajectory import StepOutcome, TrajectorySpec
from tests.modelled.toys import ToyCosts, cluster, engines, job

CONTEXT_LIMIT = 256
KV_BLOCKS = 24
"""Of 16 tokens: hardly more than one trajectory at the context limit, so that preemptions are common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """How often things go wrong."""

    failed: float
    timed_out: float


class RandomWorkload:
    """Trajectories drawn by a generator that is keyed by what is asked for."""

    def __init__(self, seed: int, luck: Luck) -> None:
        self._seed = seed
        self._luck = luck

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        prompt_tokens = random.Random(f"{self._seed}/{task}/{prompt}").randint(1, 90)
        draw = random.Random(f"{self._seed}/{task}/{prompt}/{member}/{attempt}")
        turns = draw.randint(1, 5)
        return TrajectorySpec(
            task=task,
            prompt=prompt,
            member=member,
            attempt=attempt,
            prompt_tokens=prompt_tokens,
            reset_s=draw.choice([0.0, draw.uniform(0.0, 3.0)]),
            reset_outcome=self._outcome(draw),
            new_tokens=[draw.choice([0, 5]), *(draw.randint(0, 30) for _ in range(turns - 1))],
            kept_tokens=draw.choice([None, [draw.choice([None, draw.randint(1, 60)]) for _ in range(turns)]]),
            output_tokens=[draw.choice([1, draw.randint(1, 60)]) for _ in range(turns)],
            env_s=[draw.choice([0.0, 1.0, draw.uniform(0.0, 4.0)]) for _ in range(turns)],
            env_outcome=[self._outcome(draw) for _ in range(turns)],
            reward_s=draw.choice([0.0, 0.5, draw.uniform(0.0, 6.0)]),
            reward=float(draw.randint(0, 2)),
        )

    def _outcome(self, draw: random.Random) -> StepOutcome:
        chance = draw.random()
        if chance < self._luck.failed:
            return StepOutcome.FAILED
        return StepOutcome.TIMEOUT if chance < self._luck.failed + self._luck.timed_out else StepOutcome.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job, what it works on, and what its engines cost."""

    job: Job
    workload: RandomWorkload
    costs: ToyCosts


def random_case(seed: int, preset: str | None = None) -> Case:
    """A case by its number."""
    draw = random.Random(seed)
    policy = preset or draw.choice(sorted(PRESETS))
    shape = draw.choice(["plain", "plain", "two kinds", "disaggregated", "time-shared"])
    groups = _groups(draw, shape)
    judged = draw.random() < 0.3
    if judged:
        groups += (engines("judges", pool="cheap", role=Role.JUDGE, engines=draw.randint(1, 2)),)
    tasks = _tasks(draw, judged)
    size = tasks[0].group_size
    batch_size = size * len(tasks) * draw.randint(1, 3)
    made = job(
        policy=policy,
        parts=_parts(draw, policy, size),
        tasks=tasks,
        groups=groups,
        batch_size=batch_size,
        context_limit=CONTEXT_LIMIT,
        steps=draw.randint(1, 3),
        slots=draw.choice([2, batch_size, 4 * batch_size]),
        on=_cluster(draw),
        faults=_faults(draw, sum(group.engines for group in groups)),
        kv_return=draw.choice(list(KvReturn)),
        seed=seed,
    )
    worse = draw.choice([0.0, 0.0, 0.1])
    workload = RandomWorkload(seed, Luck(failed=worse, timed_out=worse / 2))
    costs = ToyCosts(overhead_s=1 / 32, token_s=draw.choice([0.0, 1 / 512]), context_s=draw.choice([0.0, 1e-4]))
    return Case(job=made, workload=workload, costs=costs)


def _groups(draw: random.Random, shape: str) -> tuple[EngineGroup, ...]:
    settings = {
        "max_num_seqs": draw.choice([2, 8, 64]),
        "max_num_batched_tokens": draw.choice([64, 512]),
        "prefix_caching": draw.random() < 0.8,
        "scheduling_lag": draw.randint(0, 1),
    }
    first = engines("fast", engines=draw.randint(1, 3), **settings)
    if shape == "two kinds":
        return first, engines("cheap", engines=draw.randint(1, 2), **settings)
    if shape == "disaggregated":
        return replace(first, role=Role.PREFILL), engines(
            "cheap", engines=draw.randint(1, 2), role=Role.DECODE, **settings
        )
    if shape == "time-shared":
        return (replace(first, pool="train", time_shared=True),)
    return (first,)


def _tasks(draw: random.Random, judged: bool) -> tuple[Task, ...]:
    count, size = draw.randint(1, 3), draw.choice([1, 2, 4])
    kinds = [RewardKind.SERVERLESS, RewardKind.LOCAL] + [RewardKind.ENGINE] * (2 * judged)
    return tuple(
        Task(
            name=f"task{number}",
            share=1 / count,
            group_size=size,
            max_turns=draw.choice([3, 100]),
            environment=EnvironmentNeeds(cores=draw.choice([0.5, 2.0]), image_bytes=draw.choice([0.0, 3e9])),
            reward=RewardNeeds(
                kind=draw.choice(kinds), workers=draw.randint(1, 4), engine_group="judges", judge_tokens=8
            ),
        )
        for number in range(count)
    )


def _parts(draw: random.Random, policy: str, group_size: int) -> dict[str, dict[str, object]]:
    parts: dict[str, dict[str, object]] = {
        "group": {
            "redundant_members": draw.choice([0, 0, 1]),
            # A group of one never has a signal: nothing would ever be trained.
            "filter_equal_rewards": group_size > 1 and draw.random() < 0.3,
        },
        "recovery": {
            # A step may take longer than a trainer lives.
            "max_trainer_losses": 10_000,
            "reset_timeout_s": draw.choice([2.0, 600.0]),
            "step_timeout_s": draw.choice([3.5, 600.0]),
            "reward_timeout_s": draw.choice([4.0, 120.0]),
            "max_attempts": draw.randint(2, 5),
            "migrate": draw.random() < 0.8,
            "checkpoint_every": draw.choice([1, 1, 2, 3]),
        },
    }
    if policy == "rollart" and draw.random() < 0.5:
        parts["staleness"] = {"bound": draw.randint(0, 3)}
    return parts


def _cluster(draw: random.Random):
    return cluster(
        hosts=EnvironmentHosts(
            count=draw.randint(1, 3), cores_per_host=draw.choice([4.0, 64.0]), image_bandwidth_bytes_per_s=1e9
        ),
        serverless=Serverless(
            max_concurrency=draw.choice([1, 4, 1000]),
            cold_start_s=draw.choice([0.0, 2.0]),
            keep_alive_s=draw.choice([0.0, 5.0, 300.0]),
            scale_out_per_s=draw.choice([0.5, 1e9]),
        ),
        link=Link(bandwidth_bytes_per_s=draw.choice([1e8, 1e10]), latency_s=0.001, protocol=Protocol.LOCAL),
    )


def _faults(draw: random.Random, engines: int) -> Faults:
    preemptions = tuple(
        Preemption(time_s=draw.uniform(0.0, 60.0), engine=draw.randrange(engines), away_s=draw.choice([0.0, 20.0]))
        for _ in range(draw.choice([0, 0, 2, 4]))
    )
    return Faults(
        engine_mtbf_s=draw.choice([None, None, 40.0, 200.0]),
        engine_restart_s=draw.choice([0.0, 3.0]),
        preemptions=preemptions,
        trainer_mtbf_s=draw.choice([None, None, 20.0]),
        trainer_restart_s=draw.choice([0.0, 5.0]),
        reward_failed=draw.choice([0.0, 0.0, 0.1]),
        reward_late=draw.choice([0.0, 0.0, 0.05]),
        reward_garbage=draw.choice([0.0, 0.0, 0.05]),
    )
