"""The whole loop on this machine: what its parts take, a plan for them, what the plan will do, and what it does.

    python experiments/whole_loop.py [--steps 110] [--out runs/loop]

Two tiny tasks and a model of 90,000 parameters (`scenarios/laptop.yaml`). A first run of a few steps tells how far the
costs of the scenario are off on this machine; with that the planner chooses where the tasks are generated and the
simulator says what a step will take. Then Ray, vLLM and PyTorch train for real with the same scheduler, and the run
becomes a trace that the next simulation could be fed with. Needs the executor's part (`make setup-exec`).
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rollart import api
from rollart.cli.calibrate import show_calibration
from rollart.cli.present import number, show_table, told_progress
from rollart.planning.plan_scenario import PlanOptions
from rollart.workload.importers import ImportOptions, TraceImport
from rollart.workload.trace_writer import write_trace

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "experiments" / "scenarios" / "laptop.yaml"
FIRST_STEPS = 20
"""Enough to take the times of engines and trainer; the first ones learn hardly anything."""


def calibrated(folder: Path) -> api.Scenario:
    """The scenario with costs as they are on this machine, by a short run of it."""
    scenario = api.load_scenario(SCENARIO)
    with told_progress("a first run") as (progress, tell):
        api.run(scenario.with_changes(steps=FIRST_STEPS), out=folder / "first", progress=progress, tell=tell)
    found = api.calibrate(folder / "first", scenario)
    show_calibration(found)
    return api.load_scenario(SCENARIO, [f"calibration={json.dumps(asdict(found.calibration))}"])


def planned(scenario: api.Scenario, folder: Path) -> api.Scenario:
    """Plan the scenario, show what was chosen, and write the plan."""
    plan = folder / "plan.yaml"
    found = api.plan(scenario, out=plan, options=PlanOptions(top=2, repetitions=2)).as_dict()
    print(
        f"Planned: {number(found['predicted'], 3)} s a step, {found['status']}: {found['gap']:.1%} from the best that\n"
        "the model could have.\n"
    )
    return scenario.with_plan(plan)


def show_run(predicted: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """What was simulated beside what was measured, and what was learnt."""
    rows = [
        ("step, s", *(number(each["step_time_s"]["mean"], 3) for each in (predicted, measured))),
        ("tokens/s", *(number(each["throughput"]["tokens_per_s"]) for each in (predicted, measured))),
        ("staleness, mean", *(number(each["staleness"]["mean"], 2) for each in (predicted, measured))),
    ]
    show_table("Predicted and measured", ("", "simulated", "run"), rows)
    rewards = [
        (task, *(number(reward[when], 2) for when in ("first", "last", "best")))
        for task, reward in measured["reward"].items()
    ]
    show_table("Mean reward", ("task", "first", "last", "best"), rewards)


def main() -> None:
    """Calibrate, plan, simulate, run, compare; exit code 1 if the run breaks a promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, help="training steps [the scenario's]")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "loop")
    options = parser.parse_args()
    started_s = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    scenario = planned(calibrated(options.out), options.out).with_changes(steps=options.steps)
    predicted = api.simulate(scenario, out=options.out / "simulated").summary
    with told_progress("training") as (progress, tell):
        measured = api.run(scenario, out=options.out / "run", progress=progress, tell=tell).summary
    show_run(predicted, measured)
    report = api.check(options.out / "run")
    print(*report.lines(), sep="\n")
    trace = options.out / "trace.jsonl.gz"
    count = write_trace(trace, TraceImport([options.out / "run"], ImportOptions(format="rollart")))
    print(f"The run is a trace of {count:,} trajectories now, the next simulation's input: {trace}")
    print(f"{time.perf_counter() - started_s:.0f} s in all; everything is in {options.out}")
    raise SystemExit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
