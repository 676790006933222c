"""What a simulated turn costs as the cluster grows, and one large production run.

    python experiments/scale.py [--quick]        32 to 3,072 GPUs; quick: to 512
    python experiments/scale.py --production     production-3072.yaml with 100 steps

The workload of `rollart bench` with 8 trajectories for each engine in one step, run log on. CPU time, each size in a
process of its own, in turns with bare SimPy, since the machine may be shared: the ratio of the two is what to look at.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from rollart import api
from rollart.benchmark import bare_simpy_events_per_s, bench_run, trainer_devices
from rollart.cli.present import number, show_table, step_progress

SIZES = (32, 128, 512, 1024, 3072)
QUICK_SIZES = (32, 128, 512)
TRAJECTORIES_PER_ENGINE = 8
STEPS = 1
ENOUGH_TURNS = 100_000
"""Sizes are run three times until one of them makes more turns than this."""
FLAT = 1.5
PRODUCTION = Path(__file__).parent / "scenarios" / "production-3072.yaml"
PRODUCTION_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one size costs."""

    gpus: int
    turns: int
    events_per_turn: float
    us_per_turn: float
    """CPU microseconds."""
    simpy_events_per_turn: float
    """The same in events of bare SimPy."""
    peak_rss_mb: float


def engines_for(gpus: int) -> int:
    """The most engines of one device that leave room for their trainer."""
    return max(engines for engines in range(1, gpus) if engines + trainer_devices(engines) <= gpus)


def measure(gpus: int) -> Cost:
    """Simulate one size in this process; medians over the rounds."""
    engines = engines_for(gpus)
    each_us, each_ratio = [], []
    while True:
        before = bare_simpy_events_per_s()
        started_s = time.process_time()
        use = bench_run(engines, STEPS, TRAJECTORIES_PER_ENGINE).use
        turn_s = (time.process_time() - started_s) / use.turns
        around = (before + bare_simpy_events_per_s()) / 2
        each_us.append(1e6 * turn_s)
        each_ratio.append(turn_s * around)
        if use.turns > ENOUGH_TURNS or len(each_us) == 3:
            break
    return Cost(
        gpus=engines + trainer_devices(engines),
        turns=use.turns,
        events_per_turn=use.events / use.turns,
        us_per_turn=median(each_us),
        simpy_events_per_turn=median(each_ratio),
        peak_rss_mb=use.peak_rss_mb,
    )


def rows(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    """A row for each size, as text."""
    return [
        (
            f"{cost.gpus:,}",
            f"{cost.turns:,}",
            f"{cost.events_per_turn:.2f}",
            f"{cost.us_per_turn:.0f}",
            f"{cost.simpy_events_per_turn:.1f}",
            f"{cost.peak_rss_mb:,.0f}",
        )
        for cost in costs
    ]


def verdict(costs: Sequence[Cost]) -> str:
    """Whether the cost of a turn stays the same."""
    ratios = [cost.simpy_events_per_turn for cost in costs]
    spread = max(ratios) / min(ratios)
    word = "flat" if spread <= FLAT else "not flat"
    return f"most over least, in SimPy events a turn: {spread:.2f} ({word} within {FLAT})"


def scale(sizes: Sequence[int]) -> None:
    """Measure the sizes one after the other and print the table."""
    costs = []
    for gpus in sizes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            costs.append(pool.submit(measure, gpus).result())
        latest = costs[-1]
        print(
            f"{gpus} GPUs: {latest.us_per_turn:.0f} us, {latest.simpy_events_per_turn:.1f} SimPy events a turn",
            file=sys.stderr,
        )
    columns = ("GPUs", "turns", "events/turn", "CPU us/turn", "SimPy events/turn", "peak MB")
    show_table("cost of a simulated turn", columns, rows(costs))
    print(verdict(costs))


def production(steps: int) -> None:
    """Simulate the production scenario with its run log, and print what that took."""
    scenario = api.load_scenario(PRODUCTION).with_changes(steps=steps)
    with tempfile.TemporaryDirectory() as folder, step_progress(scenario.name) as progress:
        started_s = time.process_time()
        run = api.simulate(scenario, out=Path(folder) / "run", progress=progress)
        cpu_s = time.process_time() - started_s
        log_mb = (Path(folder) / "run" / "runlog.parquet").stat().st_size / 1e6
    use = run.summary["simulator"]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    simulated_h = sum(step.duration_s for step in run.statistics.steps) / 3600
    table = (
        ("steps", number(steps)),
        ("simulated hours", number(simulated_h)),
        ("turns", number(use["turns"])),
        ("wall s", number(use["wall_s"])),
        ("CPU s, figures included", number(cpu_s)),
        ("turns/s", number(use["turns_per_s"])),
        ("peak MB", number(peak_mb)),
        ("run log MB", number(log_mb)),
    )
    show_table(f"{scenario.name}, {scenario.policy}", ("figure", "value"), table)


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the three smallest sizes")
    parser.add_argument("--production", action="store_true", help="the production run in place of the sizes")
    parser.add_argument("--steps", type=int, default=PRODUCTION_STEPS, help="of the production run")
    options = parser.parse_args()
    if options.production:
        production(options.steps)
    else:
        scale(QUICK_SIZES if options.quick else SIZES)


if __name__ == "__main__":
    main()
