"""How fast the simulator is on this machine, against SimPy's bare rate measured in the same run.

One core, everything on: prefix cache, metrics, run log. The workload is multi-turn (20 to 40 turns, as the paper's
SWE-bench and FrozenLake) on engines of an 8B model under the preset `rollart`, 64 trajectories a step for each. The
machine may be shared and noisy: all rates are per second of CPU time, short rounds of both alternate, and the ratio is
the median of the rounds' ratios.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import simpy

from rollart.catalog.load import devices, models
from rollart.domain.cluster import Cluster, EnvironmentHosts, Link, Pool, Serverless
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Placement, Plan, TrainerPlacement
from rollart.domain.task import Task
from rollart.domain.training import Training
from rollart.runlog.writer import Sink
from rollart.sched.presets import resolve
from rollart.sim import SimulationResult, simulate
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload

ROUNDS = 5
BARE_PROCESSES = 100
BARE_EVENTS = 200_000

_PROFILE: dict[str, Any] = {
    "schema": 1,
    "name": "bench",
    "context_limit_tokens": 16384,
    "tasks": {
        "agent": {
            "turns": {"quantiles": {0: 20, 0.5: 30, 1: 40}, "guess": True},
            "prompt_tokens": {"quantiles": {0: 300, 0.5: 700, 1: 1200}, "guess": True},
            "observation_tokens": {"quantiles": {0: 20, 0.5: 200, 1: 900}, "guess": True},
            "output_tokens": {"quantiles": {0: 10, 0.5: 100, 1: 500}, "guess": True},
            "env_s": {"quantiles": {0: 0.05, 0.5: 0.5, 1: 4}, "guess": True},
            "reset_s": {"quantiles": {0: 0.5, 0.5: 2, 1: 20}, "guess": True},
            "reward_s": {"quantiles": {0: 0.01, 0.5: 0.1, 1: 2}, "guess": True},
            "step_failures": {"failed": 0.0001, "timeout": 0.0, "timeout_s": 60, "guess": True},
            "reset_failures": {"failed": 0.001, "timeout": 0.0, "timeout_s": 60, "guess": True},
            "success": {"mean": 0.5, "spread": 1.0, "guess": True},
        }
    },
}


def trainer_devices(engines: int) -> int:
    """Devices that train beside `engines` of rollout: a fourth, in whole nodes."""
    return max(8, engines // 4 // 8 * 8)


def bench_job(engines: int, steps: int, trajectories_per_engine: int = 64) -> Job:
    """The job of the benchmark on `engines` H800 of rollout, with a batch in proportion."""
    h800 = devices()["H800"]
    trainer = trainer_devices(engines)
    link = Link(bandwidth_bytes_per_s=50e9, latency_s=5e-6)
    placement = Placement(
        engine_groups=(EngineGroup(name="rollout", pool="h800", engines=engines, tensor_parallel=1, max_num_seqs=256),),
        trainer=TrainerPlacement(pool="h800", devices=trainer, tensor_parallel=4),
        environment_slots=256 * engines,
    )
    return Job(
        name="bench",
        cluster=Cluster(
            pools={"h800": Pool(name="h800", device=h800, count=engines + trainer, price_per_hour=2.85, fabric=link)},
            links={},
            default_link=link,
            environments=EnvironmentHosts(count=64, cores_per_host=128, image_bandwidth_bytes_per_s=1e10),
            serverless=Serverless(max_concurrency=10_000, cold_start_s=1.0, keep_alive_s=600.0, scale_out_per_s=1000.0),
        ),
        model=models()["Qwen3-8B"],
        tasks=(Task(name="agent", share=1.0, group_size=8, max_turns=30),),
        training=Training(batch_size=trajectories_per_engine * engines, context_limit=16384),
        plan=Plan(placement=placement, policy=resolve("rollart")),
        steps=steps,
    )


def bench_workload() -> ProfileWorkload:
    """The workload of the benchmark."""
    return ProfileWorkload(profile_from_mapping(_PROFILE, "bench profile"), 0)


def bench_run(
    engines: int, steps: int, trajectories_per_engine: int = 64, sinks: tuple[Sink, ...] = ()
) -> SimulationResult:
    """Simulate the benchmark with the run log written to a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        job = bench_job(engines, steps, trajectories_per_engine)
        return simulate(job, bench_workload(), log_path=Path(folder) / "runlog.parquet", sinks=sinks)


def bare_simpy_events_per_s() -> float:
    """Timeouts with resume per CPU second of SimPy alone, 100 processes pending."""
    environment = simpy.Environment()

    def tick() -> Any:
        while True:
            yield environment.timeout(1.0)

    for _ in range(BARE_PROCESSES):
        environment.process(tick())
    started = time.process_time()
    environment.run(until=BARE_EVENTS / BARE_PROCESSES)
    return BARE_EVENTS / (time.process_time() - started)


def bench(engines: int = 8, steps: int = 1) -> dict[str, float]:
    """Turns per CPU second, SimPy's bare rate, and the median of their ratios over alternating rounds."""
    turns_per_s, bare, ratios = [], [], []
    turns, peak = 0, 0.0
    for _ in range(ROUNDS):
        before = bare_simpy_events_per_s()
        started = time.process_time()
        use = bench_run(engines, steps).use
        rate = use.turns / (time.process_time() - started)
        around = (before + bare_simpy_events_per_s()) / 2
        turns, peak = use.turns, use.peak_rss_mb
        turns_per_s.append(rate)
        bare.append(around)
        ratios.append(rate / around)
    return {
        "turns_per_s": statistics.median(turns_per_s),
        "simpy_events_per_s": statistics.median(bare),
        "ratio": statistics.median(ratios),
        "turns": turns,
        "engines": engines,
        "peak_rss_mb": peak,
    }
