"""Jobs of a small catalogue model on catalogue devices, and a shipped profile to work on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rollart.catalog.load import devices, models
from rollart.domain.cluster import Pool
from rollart.domain.job import Job
from rollart.workload.profile_file import load_profile
from rollart.workload.profile_workload import ProfileWorkload
from tests.modelled.toys import cluster, job, task

CHECKOUT = Path(__file__).resolve().parents[2]


def profiled(seed: int = 0) -> ProfileWorkload:
    """Two tasks of the shipped laptop profile."""
    return ProfileWorkload(load_profile(CHECKOUT / "traces/laptop.yaml"), seed, context_limit_tokens=512)


def real_job(policy: str = "rollart", *, gpus: str = "H20", steps: int = 3, seed: int = 0, **fields: Any) -> Job:
    """A small model on catalogue devices."""
    device = devices()[gpus]
    on = cluster()
    pools = {name: Pool(name=name, device=device, count=pool.count) for name, pool in on.pools.items()}
    tasks = (task("FrozenLake", share=0.5, max_turns=12), task("counting", share=0.5, max_turns=1))
    made = job(
        policy=policy,
        tasks=tasks,
        batch_size=16,
        context_limit=512,
        steps=steps,
        seed=seed,
        on=replace(on, pools=pools),
        **fields,
    )
    return replace(made, model=models()["SmolLM2-135M"])
