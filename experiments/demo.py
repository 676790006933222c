"""The simulator in a minute: five policies train Qwen3-32B on five agentic tasks with 128 GPUs.

    python experiments/demo.py [--steps 4] [--workers 2] [--out runs/demo]

Draws a small trace of the workload and says what is in it, simulates the policies on the clusters of the RollArt
paper (arXiv 2512.22560), checks each run's log, and writes figures and timelines. Progress goes to stderr.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from rollart import api
from rollart.cli.present import number, show_table, step_progress
from rollart.cli.summaries import compare_summaries, write_comparison
from rollart.report.words import stage_name
from rollart.runlog.stages import Stage
from rollart.workload.info import trace_info
from rollart.workload.profile_file import load_profile
from rollart.workload.synth import synthesize
from rollart.workload.task_info import TaskInfo
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_writer import write_trace

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "experiments" / "scenarios"
PROFILE = ROOT / "traces" / "paper-five-tasks.yaml"
GROUPS = 16
"""Of each task in the trace, eight trajectories each."""

PAPER = {"sync": "2.65-4.58", "sync+": "2.05", "one-off": "1.35", "areal": "1.31", "rollart": "1"}
"""Step time in RollArt's, for 32B; of sync the paper gives throughputs, over three sizes of model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the demo shows of a run."""

    policy: str
    cluster: str
    summary: Mapping[str, Any]
    devices: Mapping[str, int]
    """By pool."""
    duration_s: float
    """Simulated time of all steps."""
    check: api.CheckReport

    @property
    def wasted_share(self) -> float:
        """Device time of engines spent on trajectories that were not trained on, of all device time."""
        waste = self.summary["waste"]
        wasted_s = math.fsum(waste[cause] for cause in ("stale", "surplus", "failed"))
        return float(wasted_s / (sum(self.devices.values()) * self.duration_s))

    @property
    def busy_share(self) -> float:
        """Busy share of the device time of all pools."""
        used = self.summary["utilization"]
        busy = sum(used[pool] * count for pool, count in self.devices.items())
        return float(busy / sum(self.devices.values()))


def cluster_of(policy: str) -> str:
    """The scenario of the paper's cluster for a policy: only RollArt knows affinity, so only it gets mixed GPUs."""
    return "paper-128" if policy == "rollart" else "paper-128-h800"


def run_policy(policy: str, folder: Path, steps: int, ticks: "Queue[str]") -> Outcome:
    """Simulate a policy on its cluster, in this process, and check its log; `ticks` gets an item a step."""
    scenario = api.load_scenario(SCENARIOS / f"{cluster_of(policy)}.yaml")
    scenario = scenario.with_changes(policy=policy, steps=steps)
    run = api.simulate(scenario, out=folder / policy, progress=lambda _done, _steps: ticks.put(policy))
    return Outcome(
        policy=policy,
        cluster=scenario.name,
        summary=run.summary,
        devices={pool.name: pool.devices for pool in run.statistics.header.pools},
        duration_s=math.fsum(step.duration_s for step in run.statistics.steps),
        check=api.check(folder / policy),
    )


def run_policies(folder: Path, steps: int, workers: int) -> list[Outcome]:
    """All policies, several at a time, with a bar of steps on stderr."""
    context = get_context("spawn")
    with context.Manager() as shared, ProcessPoolExecutor(workers, context) as pool:
        ticks = shared.Queue()
        # The last ones take longest; begun first, they leave no process alone at the end.
        runs = {policy: pool.submit(run_policy, policy, folder, steps, ticks) for policy in reversed(PAPER)}
        _follow(runs, ticks, steps * len(PAPER))
        return [runs[policy].result() for policy in PAPER]


def _follow(runs: Mapping[str, "Future[Outcome]"], ticks: "Queue[str]", steps: int) -> None:
    """Show progress until all runs are done; without a terminal, a line for each run."""
    done, told = 0, set[str]()
    with step_progress("simulating 5 policies") as progress:
        while not all(run.done() for run in runs.values()):
            try:
                ticks.get(timeout=0.2)
                done += 1
            except Empty:
                pass
            if progress is not None:
                progress(done, steps)
                continue
            for policy in [policy for policy, run in runs.items() if run.done() and policy not in told]:
                told.add(policy)
                print(f"{policy}: simulated and checked", file=sys.stderr)


def show_workload(trace: Path, seed: int = 0) -> None:
    """Draw a trace from the profile of the five tasks, and show a row for each of them."""
    profile = load_profile(PROFILE)
    write_trace(trace, synthesize(profile, groups=GROUPS, group_size=8, seed=seed))
    found = trace_info(TraceReader(trace))
    columns = ("task", "turns", "output tokens", "context tokens", "env step s", "reset s", "failed")
    show_table(
        "The workload: five tasks of the paper, 128 trajectories each (p50 / most)",
        columns,
        [task_row(task) for task in found.tasks],
    )
    print(f"More about it: rollart trace info {_shown(trace)}\n")


def task_row(task: TaskInfo) -> tuple[str, ...]:
    """What sets the tasks apart."""

    def of(quantity: str) -> str:
        found = task.quantities[quantity]
        return "-" if found is None else f"{number(found.p50, 2)} / {number(found.max, 2)}"

    quantities = ("turns", "response_tokens", "context_tokens", "env_s", "reset_s")
    return (task.task, *map(of, quantities), f"{task.failed_share:.1%}")


def outcome_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """A row for each policy: how long its step takes, and what it costs, beside RollArt's."""
    reference_s = next(each.summary["step_time_s"]["mean"] for each in outcomes if each.policy == "rollart")
    rows: list[tuple[str, ...]] = []
    for each in outcomes:
        step_s = each.summary["step_time_s"]["mean"]
        rows.append(
            (
                each.policy,
                number(step_s),
                f"{step_s / reference_s:.2f}",
                PAPER[each.policy],
                number(each.summary["throughput"]["tokens_per_s"]),
                f"{each.busy_share:.0%}",
                f"{each.wasted_share:.1%}",
                number(each.summary["cost_per_step"]),
            )
        )
    return rows


def path_text(stages_s: Mapping[str, float]) -> str:
    """The critical path in words, the longest stage first; stages under one per cent are left out."""
    total_s = math.fsum(stages_s.values())
    longest = sorted(stages_s.items(), key=lambda item: -item[1])
    return ", ".join(f"{stage_name(Stage(name))} {s:.0f}" for name, s in longest if s >= total_s / 100)


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """The comparison as a table with its legend."""
    columns = ("policy", "step s", "ratio", "paper", "tokens/s", "busy", "lost", "cost")
    show_table("Five policies: how long a training step takes, and what it costs", columns, outcome_rows(outcomes))
    print(
        "ratio: step time in RollArt's; paper: the same for 32B as reported (sync: range of its throughputs)\n"
        "busy: of the device time of all GPUs; lost: device time of trajectories that were not trained on\n"
        "cost: of a step, in hours of one H20 (an H800 costs 2.85); RollArt has 96 H800 and 32 H20, the\n"
        "others have 128 H800\n"
    )
    paths = [(each.policy, path_text(each.summary["stages_s"])) for each in outcomes]
    show_table("What a step waits for: seconds of its critical path", ("policy", "critical path"), paths, texts=2)


def show_checks(outcomes: Sequence[Outcome]) -> bool:
    """What the checks of the run logs say; whether all is well."""
    good = [each for each in outcomes if each.check.ok]
    events = sum(each.check.replay.events for each in outcomes)
    for each in outcomes:
        if not each.check.ok:
            print(f"{each.policy}:", *each.check.lines(), sep="\n  ")
    print(
        f"Checked {len(outcomes)} run logs with {events:,} events: in {len(good)} of them all invariants\n"
        "hold, and a replay of the events makes the same decisions.\n"
    )
    return len(good) == len(outcomes)


def show_places(folder: Path) -> None:
    """Where everything is."""
    print(f"In {_shown(folder)}:")
    for place, what in (
        ("comparison.png", "the policies side by side"),
        ("POLICY/summary.json, steps.csv", "the figures of a run"),
        ("POLICY/figures/*.png", "steps, utilisation, staleness, single trajectories"),
        ("POLICY/timeline.json", "who did what when: open it in ui.perfetto.dev"),
        ("POLICY/runlog.parquet", "every event and command: rollart check, or pandas"),
    ):
        print(f"  {place:32} {what}")


def _shown(path: Path) -> Path:
    """Relative to the working directory where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def main() -> None:
    """Run the demo; exit code 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4, help="training steps; the first warms up")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "demo")
    options = parser.parse_args()
    started_s = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    show_workload(options.out / "trace.jsonl.gz")
    outcomes = run_policies(options.out, options.steps, options.workers)
    summaries = [each.summary for each in outcomes]
    write_comparison(options.out, summaries, compare_summaries(summaries, list(PAPER)), list(PAPER))
    show_outcomes(outcomes)
    good = show_checks(outcomes)
    show_places(options.out)
    print(f"{time.perf_counter() - started_s:.0f} s in all", file=sys.stderr)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
