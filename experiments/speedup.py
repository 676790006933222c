"""Step times of the five policies at constant work, measured, with the simulator's predictions beside the ratios.

    .venv/bin/python experiments/speedup.py --repetitions 3
    .venv/bin/python experiments/speedup.py --repetitions 3 --policies sync --set execution.trainer_threads=2

Real runs of `laptop.yaml` with learning rate 0 (the policy stays as it is, so every step has the same work, and no row
is left out), without environment latency and with real, sleeping environments whose steps take 0.1 s or 1 s longer on
average, by a Pareto distribution of tail index 2.5. The policies take turns, on the same engines and the same trainer
(`kept_workers.py`). The simulator is told the same delays, and nothing of what was measured. Runs with other
settings (--set) have rows of their own: in `sync` the trainer has both cores to itself while it works. Writes
experiments/results/speedup.json after every run; a run that is there is not made again, so the experiment can be
stopped and gone on with (`--for-s` stops it by itself).
"""

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml

from rollart import api
from rollart.cli.present import show_table
from rollart.exec.real.environments.delayed import delay_s
from rollart.scenario.scenario import Scenario

ROOT = Path(__file__).resolve().parents[1]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"
PROFILE = ROOT / "traces/laptop.yaml"
RESULT = ROOT / "experiments/results/speedup.json"
POLICIES = ("sync", "sync+", "one-off", "areal", "rollart")
REFERENCE = "sync"
TAIL = 2.5
STEPS = {0.0: 15, 0.1: 15, 1.0: 8}
"""Mean delay of an environment's step in seconds -> training steps."""
WARMUP = 3
BATCH, TURNS = 64, 6
"""Trajectories of a step, and most turns of FrozenLake."""
ENVIRONMENTS = {"FrozenLake": ("frozenlake", {}), "counting": ("counting", {"length": 32})}
LOOK_S, MOST_PAUSE_S = 0.1, 3.0
"""A run in which this process was paused for longer (a machine that is suspended, say) is made again."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.99)


def scenario_of(policy: str, mean_s: float, *more: str) -> Scenario:
    """The scenario of a run."""
    settings = [
        f"policy={{preset: {policy}, recovery: {{checkpoint_every: 50}}}}",
        "execution.learning.learning_rate=0.0",
        f"training.batch_size={BATCH}",
        f"tasks.FrozenLake.max_turns={TURNS}",
        f"steps={STEPS[mean_s]}",
        f"warmup_steps={WARMUP}",
    ]
    if mean_s:
        for task, (environment, arguments) in ENVIRONMENTS.items():
            delayed = {"environment": environment, "arguments": arguments, "mean_s": mean_s, "tail": TAIL}
            settings += [
                f"tasks.{task}.execution.environment=delayed",
                f"tasks.{task}.execution.arguments={json.dumps(delayed)}",
            ]
    return api.load_scenario(LAPTOP, [*settings, *more])


def delayed_profile(mean_s: float) -> dict[str, Any]:
    """The laptop's profile with the delays on top of the median step of its environments."""
    profile: dict[str, Any] = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    for task in profile["tasks"].values():
        own_s = task["env_s"]["quantiles"][0.5]
        task["env_s"] = {
            "quantiles": {p: own_s + delay_s(mean_s, TAIL, 1.0 - p) for p in QUANTILES},
            "tail": {"family": "pareto", "from": QUANTILES[-1], "parameter": TAIL},
            "min": delay_s(mean_s, TAIL, 1.0),
            "source": "as configured",
        }
    return profile


def predicted_s(policy: str, mean_s: float) -> float:
    """Mean step time by the simulator."""
    with tempfile.TemporaryDirectory(prefix="rollart-speedup-") as folder:
        more = []
        if mean_s:
            path = Path(folder) / "delayed.yaml"
            path.write_text(yaml.safe_dump(delayed_profile(mean_s)), encoding="utf-8")
            more = [f"tasks.{task}.workload.profile={path}" for task in ENVIRONMENTS]
        mean: float = api.simulate(scenario_of(policy, mean_s, *more)).summary["step_time_s"]["mean"]
    return mean


def measured(workers: Any, policy: str, mean_s: float, repetition: int, more: Sequence[str]) -> dict[str, Any]:
    """One real run."""
    scenario = scenario_of(policy, mean_s, *more)
    with tempfile.TemporaryDirectory(prefix="rollart-speedup-") as folder:
        with longest_pause() as pause:
            statistics = workers.run(scenario.job(), scenario.execution(), Path(folder)).statistics
        checked = api.check(folder).ok
    staleness = [each for step in statistics.counted_steps for each in step.staleness]
    return {
        "version": api.code_version(),
        "policy": policy,
        "mean_delay_s": mean_s,
        "repetition": repetition,
        "settings": list(more),
        "cores": len(os.sched_getaffinity(0)),
        "longest_pause_s": round(pause[0], 2),
        "steps_s": [round(step.duration_s, 4) for step in statistics.counted_steps],
        "trajectories": {end.value: count for end, count in statistics.ends.items()},
        "staleness": fmean(staleness),
        "log_holds": checked,
    }


@contextmanager
def longest_pause() -> Iterator[list[float]]:
    """The longest time for which this process did not come to run, in seconds, once it is over."""
    found, over = [0.0], threading.Event()

    def look() -> None:
        last_s = time.monotonic()
        while not over.wait(LOOK_S):
            now_s = time.monotonic()
            found[0], last_s = max(found[0], now_s - last_s - LOOK_S), now_s

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def step_s(run: Mapping[str, Any]) -> float:
    """Mean step time of a run."""
    return fmean(run["steps_s"])


def rows(
    runs: Sequence[Mapping[str, Any]], predictions: Mapping[str, float], mean_s: float
) -> Iterator[tuple[str, ...]]:
    """A row a policy: step time, how often it fits into the reference's, and what was predicted of both."""
    of: dict[tuple[str, ...], dict[int, float]] = {(policy,): {} for policy in POLICIES}
    for run in runs:
        if run["mean_delay_s"] == mean_s:
            of.setdefault((run["policy"], *run["settings"]), {})[run["repetition"]] = step_s(run)
    reference = of[(REFERENCE,)]
    for (policy, *more), times in of.items():
        ratios = [reference[each] / time_s for each, time_s in times.items() if each in reference]
        if not ratios:
            continue
        predicted = predictions[key(policy, mean_s)]
        yield (
            ", ".join((policy, *more)),
            str(len(times)),
            f"{median(times.values()):.2f}",
            f"{median(ratios):.2f}",
            f"{min(ratios):.2f}-{max(ratios):.2f}",
            f"{predicted:.2f}",
            f"{predictions[key(REFERENCE, mean_s)] / predicted:.2f}",
        )


def key(policy: str, mean_s: float) -> str:
    """Of a prediction."""
    return f"{policy}, {mean_s:g} s"


def show(result: Mapping[str, Any]) -> None:
    """A table for each latency."""
    columns = ("policy", "runs", "step, s", f"{REFERENCE} / it", "range", "step, simulated", "ratio, simulated")
    for mean_s in STEPS:
        title = f"Environments that take {mean_s:g} s longer" if mean_s else "No environment latency"
        found = list(rows(result["runs"], result["predicted_s"], mean_s))
        if found:
            show_table(title, columns, found)


def runs(missing: Sequence[tuple[int, float, str]], until_s: float, more: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Make runs until all are there, or the time is over."""
    # Here, since predictions need none of the executor's packages.
    from kept_workers import kept_workers

    first = scenario_of(REFERENCE, 0.0, *more)
    with kept_workers(first.job(), first.execution()) as workers:
        for repetition, mean_s, policy in missing:
            run = None
            while time.perf_counter() < until_s and (run is None or run["longest_pause_s"] > MOST_PAUSE_S):
                run = measured(workers, policy, mean_s, repetition, more)
            if run is not None and run["longest_pause_s"] <= MOST_PAUSE_S:
                yield run


def saved() -> dict[str, Any]:
    """What is there so far."""
    result: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {"runs": []}
    return result | {"batch_size": BATCH, "most_turns": TURNS, "tail": TAIL, "warmup_steps": WARMUP}


def main() -> None:
    """Make what is missing, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--delays", type=float, nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=POLICIES)
    parser.add_argument("--for-s", type=float, default=float("inf"), help="begin no further run after so many seconds")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="KEY=VALUE, for the real runs")
    options = parser.parse_args()
    began_s = time.perf_counter()
    predictions = {key(policy, mean_s): predicted_s(policy, mean_s) for mean_s in STEPS for policy in POLICIES}
    there = {
        (run["policy"], run["mean_delay_s"], run["repetition"])
        for run in saved()["runs"]
        if run["settings"] == options.settings
    }
    wanted = product(range(options.repetitions), options.delays, options.policies)
    missing = [each for each in wanted if (each[2], each[1], each[0]) not in there]
    if missing:
        for run in runs(missing, began_s + options.for_s, options.settings):
            result = saved()
            result["runs"].append(run)
            RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(key(run["policy"], run["mean_delay_s"]), f"{step_s(run):.2f} s", flush=True)
    result = saved() | {"predicted_s": predictions}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result)


if __name__ == "__main__":
    main()
