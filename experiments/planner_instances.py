"""Tiny instances for the planner: scenarios of up to 8 GPUs in two or three pools, with two or three tasks, drawn.

Sizes were chosen after looking at first instances: outputs were made longer and links wider after four in which new
weights took twenty times as long as rollout, and the bounds on the size of a grid were set so that one instance takes
less than a minute.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rollart import api
from rollart.sched.placement.ground import ground_of

LEAST_PLANS, MOST_PLANS = 90, 130
"""Size of a grid; instances outside are drawn again."""
POOLS = ((4, 4), (4, 2), (2, 4), (5, 3), (3, 5), (4, 3), (3, 3), (2, 2, 2), (3, 2, 2), (2, 2, 3))
DEVICES = ("H800", "H20", "A800", "H100")
MODELS = {
    "0.6B": {"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": 3072},
    "1.7B": {"hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": 6144},
    "4B": {"hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 9728},
}
SAME = {
    "model_type": "qwen3",
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "max_position_embeddings": 32768,
}


def draw_instance(generator: np.random.Generator, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a scenario with its profile; returns its path and a description."""
    counts = POOLS[int(generator.integers(len(POOLS)))]
    devices = [DEVICES[int(place)] for place in generator.permutation(len(DEVICES))[: len(counts)]]
    size = list(MODELS)[int(generator.integers(len(MODELS)))]
    tasks = [f"task{number}" for number in range(int(generator.integers(2, 4 if len(counts) == 2 else 3)))]
    folder.mkdir(parents=True)
    profile = {
        "schema": 1,
        "name": "tiny",
        "context_limit_tokens": 16384,
        "tasks": {task: draw_task(generator) for task in tasks},
    }
    (folder / "profile.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
    scenario = {
        "schema_version": 1,
        "name": "tiny",
        "model": {"name": f"tiny-{size}", **SAME, **MODELS[size]},
        "cluster": {
            "pools": {d.lower(): {"device": d, "count": c} for d, c in zip(devices, counts, strict=True)},
            "default_link": {"bandwidth_gbit_per_s": float(generator.choice([100, 200, 400])), "latency_us": 50},
            "environments": {"hosts": 2, "cores_per_host": 64, "image_bandwidth_gbit_per_s": 10},
        },
        "tasks": [{"name": t, "workload": {"profile": "profile.yaml"}, "group_size": 4} for t in tasks],
        "training": {"batch_size": 8 * len(tasks), "context_limit": 16384, "micro_batch_tokens": 16384},
        "policy": "rollart",
        "steps": 4,
    }
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario, sort_keys=False))
    pools = " + ".join(f"{count} {device}" for device, count in zip(devices, counts, strict=True))
    return path, {"pools": pools, "model": size, "tasks": len(tasks)}


def draw_task(generator: np.random.Generator) -> dict[str, Any]:
    """A task of few or many turns, short or long outputs, quick or slow environments."""
    turns = int(generator.choice([1, 1, 2, 3]))
    output = float(np.exp(generator.uniform(np.log(400), np.log(6000)))) / turns**0.5
    step_s = float(np.exp(generator.uniform(np.log(0.05), np.log(4.0))))

    def spread(median: float, ratio: float = 2.0) -> dict[str, Any]:
        values = {0.1: median / ratio, 0.5: median, 0.9: median * ratio, 0.99: median * ratio**1.8}
        return {"quantiles": values, "guess": True}

    return {
        "turns": {"quantiles": {0.1: max(1, turns // 2), 0.5: turns, 0.95: 2 * turns, 1: 2 * turns}, "guess": True},
        "prompt_tokens": spread(float(generator.uniform(100, 1500))),
        "observation_tokens": spread(float(generator.uniform(20, 400))),
        "output_tokens": spread(output),
        "env_s": spread(step_s),
        "reset_s": spread(2 * step_s),
        "reward_s": spread(0.05),
        "reset_failures": {"guess": True},
        "step_failures": {"guess": True},
        "success": {"mean": 0.5, "spread": 0, "guess": True},
    }


def fitting_instance(seed: int, number: int, folder: Path) -> tuple[Path, dict[str, Any]]:
    """An instance whose grid is neither trivial nor too large; prints the grid's size."""
    generator = np.random.default_rng((seed, number))
    for tried in itertools.count():
        path, described = draw_instance(generator, folder / f"{number}-{tried}")
        scenario = api.load_scenario(path)
        size = sum(1 for _ in ground_of(scenario.job(), scenario.workload()).grid.plans())
        if LEAST_PLANS <= size <= MOST_PLANS:
            break
    print(f"| {number} | {described['pools']} | {described['model']} | {described['tasks']} | {size} |", flush=True)
    return path, described
