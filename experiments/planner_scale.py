"""How long a proof takes: the planner's model alone on the paper's cluster and on one of three thousand devices.

    python experiments/planner_scale.py [--scenarios paper-128,production-3072] [--time-limit 60]

Each scenario is solved to its proof in a process of its own, without simulations. Printed are the gap to the model's
bound, the floor, seconds on the clock (data, search, candidates and floor; the scenario's loading apart), seconds of
processor time, and the most memory that the process held. Writes planner-scale.json.
"""

import argparse
import json
import multiprocessing
import os
import resource
import time
from pathlib import Path
from typing import Any

from rollart import api
from rollart.report.output import write_text
from rollart.sched.placement.solve import Problem, solve

SCENARIOS = Path(__file__).parent / "scenarios"
TOP = 4
"""Candidates that are made, as `rollart plan` does."""


def proved(name: str, time_limit_s: float) -> dict[str, Any]:
    """A scenario solved, in this process."""
    began_s = time.perf_counter()
    scenario = api.load_scenario(SCENARIOS / f"{name}.yaml")
    problem = Problem(job=scenario.job(), workload=scenario.workload())
    loaded_s = time.perf_counter() - began_s
    report = solve(problem, clock=time.perf_counter, time_limit_s=time_limit_s, top=TOP)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "scenario": name,
        "devices": sum(pool.count for pool in problem.job.cluster.pools.values()),
        "status": report.status,
        "predicted_s": report.best.value,
        "bound_s": report.bound,
        "gap": report.gap,
        "floor_s": report.floor,
        "load_wall_s": loaded_s,
        "solve_wall_s": report.wall_s,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "memory_mb": usage.ru_maxrss / 1024,
    }


def lines(results: list[dict[str, Any]]) -> list[str]:
    """The results as a table."""
    found = [
        "| scenario | devices | status | predicted, s | gap | floor / predicted | solved in, s | processor, s | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        found.append(
            f"| {one['scenario']} | {one['devices']} | {one['status']} | {one['predicted_s']:.1f} | "
            f"{100 * one['gap']:.3f} % | {one['floor_s'] / one['predicted_s']:.2f} | {one['solve_wall_s']:.1f} | "
            f"{one['processor_s']:.1f} | {one['memory_mb']:.0f} |"
        )
    return found


def main() -> None:
    """Solve each in a fresh process, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", default="paper-128,production-3072", help="names, with commas between them")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of the optimiser")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    results = []
    for name in options.scenarios.split(","):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results.append(pool.apply(proved, (name, options.time_limit)))
    content = {
        "code_version": api.code_version(),
        "cores": len(os.sched_getaffinity(0)),
        "time_limit_s": options.time_limit,
        "results": results,
    }
    write_text(options.out / "planner-scale.json", json.dumps(content, indent=1, allow_nan=False) + "\n")
    print("\n".join([f"{content['cores']} cores", "", *lines(results)]))


if __name__ == "__main__":
    main()
