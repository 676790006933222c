"""Recorded trajectories as a workload: the 200 public ones of tau-bench's airline domain, on a small cluster.

    python experiments/tau_bench.py [gpt-4o-airline.json.gz] [--steps 6] [--out runs/tau-bench]

Turns, contexts and rewards are the recorded ones; tokens are estimated from characters, and times, which the
recordings lack, are drawn from `traces/tau-bench-times.yaml` (guesses). Simulates Qwen3-8B on 16 H800, half of which
train, under sync+ and rollart. Says in one line what is wrong where the file is absent.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rollart import api
from rollart.cli.present import number, show_table, step_progress
from rollart.domain.errors import RollArtError
from rollart.report.words import stage_name
from rollart.runlog.stages import Stage
from rollart.workload.importers import import_trace
from rollart.workload.info import trace_info
from rollart.workload.trace_writer import write_trace

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "../shared/traces/tau_bench/gpt-4o-airline.json.gz"
POLICIES = ("sync+", "rollart")
TASK = "tau-bench-airline"
STAGES = tuple(stage for stage in Stage if stage is not Stage.WAITING_FOR_BATCH)
QUANTITIES = ("turns", "prompt_tokens", "observation_tokens", "output_tokens", "context_tokens")


def scenario_mapping(trace: Path) -> dict[str, Any]:
    """The scenario, all of it assumed but for groups of four, the trials of a task in the recordings."""
    return {
        "schema_version": 1,
        "name": "tau-bench",
        "model": "Qwen3-8B",
        "cluster": {
            "pools": {"h800": {"device": "H800", "count": 16}},
            "environments": {"hosts": 4, "cores_per_host": 64},
        },
        "tasks": [
            {
                "name": TASK,
                "workload": {"trace": str(trace), "times": "traces/tau-bench-times.yaml"},
                "group_size": 4,
                "max_turns": 40,
                "environment": {"cores": 0.5},
            }
        ],
        "training": {"batch_size": 200, "context_limit": 16384},
        "placement": {
            "trainer": {"pool": "h800", "devices": 8, "tensor_parallel": 2},
            "engines": [{"name": "h800", "pool": "h800", "engines": 8}],
            "environment_slots": 512,
        },
        "steps": 6,
        "warmup_steps": 1,
    }


def bring_in(recorded: Path, trace: Path) -> None:
    """Import the recordings and show what is in them."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    trajectories = list(import_trace("tau-bench", recorded))
    write_trace(trace, trajectories)
    for task in trace_info(trajectories).tasks:
        title = (
            f"{task.task}: {task.trajectories} trajectories in {task.groups} groups, {task.groups_without_signal} of "
            f"them without signal; mean reward {number(task.reward_mean)}"
        )
        found = [(name, task.quantities[name]) for name in QUANTITIES]
        rows = [(n, *map(number, (s.mean, s.p50, s.p99, s.max))) for n, s in found if s is not None]
        show_table(title, ("quantity", "mean", "p50", "p99", "max"), rows)


def policy_rows(summaries: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each policy."""
    return [
        (
            summary["policy"],
            number(summary["step_time_s"]["mean"]),
            *(number(summary["stages_s"][stage.value]) for stage in STAGES),
            number(summary["throughput"]["tokens_per_s"]),
        )
        for summary in summaries
    ]


def simulate(scenario_file: Path, steps: int) -> None:
    """Simulate both policies and show their steps."""
    scenario = api.load_scenario(scenario_file).with_changes(steps=steps)
    summaries = []
    for policy in POLICIES:
        with step_progress(policy) as progress:
            folder = scenario_file.parent / policy
            summaries.append(api.simulate(scenario.with_changes(policy=policy), out=folder, progress=progress).summary)
    columns = ("policy", "step s", *map(stage_name, STAGES), "tokens/s")
    show_table("Qwen3-8B on 16 H800: step time and its critical path in seconds", columns, policy_rows(summaries))


def main() -> None:
    """Import, look, simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "tau-bench")
    options = parser.parse_args()
    if not options.recorded.is_file():
        sys.exit(f"error: {options.recorded}: no such file; give the path of tau-bench's gpt-4o-airline.json(.gz)")
    try:
        trace = (options.out / "trace.jsonl.gz").resolve()
        bring_in(options.recorded, trace)
        scenario_file = options.out / "scenario.yaml"
        scenario_file.write_text(yaml.safe_dump(scenario_mapping(trace), sort_keys=False), encoding="utf-8")
        simulate(scenario_file, options.steps)
    except RollArtError as error:
        sys.exit(f"error: {error}")
    print(f"wrote {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
