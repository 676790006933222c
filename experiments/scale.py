"""What a simulated turn costs as the cluster grows, and one large production run.

    python experiments/scale.py [--quick]        32 to 3,072 GPUs; quick: to 512; or --sizes
    python experiments/scale.py --production     production-3072.yaml with 100 steps

The workload of `rollart bench` with 8 trajectories for each engine in one step, run log on. CPU time, each size in a
process of its own. The machine may be shared, and its clock not constant: the simulation halts every 20 s of CPU time
for bare SimPy, in another process of its own, and the ratio of the two is what to look at.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from rollart import api
from rollart.benchmark import bare_simpy_events_per_s, bench_run, trainer_devices
from rollart.cli.present import number, show_table, step_progress
from rollart.runlog.window import Window

SIZES = (32, 128, 512, 1024, 3072)
QUICK_SIZES = (32, 128, 512)
TRAJECTORIES_PER_ENGINE = 8
STEPS = 1
LAP_CPU_S = 20.0
"""CPU time between two measurements of bare SimPy."""
ENOUGH_TURNS = 100_000
"""Sizes are run several times until one of them makes more turns than this."""
ROUNDS = 3
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


class Laps:
    """A sink that cuts a simulation into laps, with a measurement of bare SimPy before and after each."""

    def __init__(self, bare: Executor) -> None:
        """`bare` has another process, so that neither finds its caches and its memory full of the other's."""
        self._bare = bare
        self._rate_per_s = self._measure()
        self._since_s = time.process_time()
        self.cpu_s = 0.0
        """Of all laps."""
        self.simpy_events = 0.0
        """What bare SimPy would have made in that time."""

    def _measure(self) -> float:
        return self._bare.submit(bare_simpy_events_per_s).result()

    def consume(self, window: Window) -> None:  # noqa: ARG002 - an occasion, whatever it holds
        """End the lap if it is long enough."""
        if time.process_time() - self._since_s >= LAP_CPU_S:
            self.end_lap()

    def end_lap(self) -> None:
        """Count the time since the last lap, in SimPy's rate around it, and start another."""
        lap_s = time.process_time() - self._since_s
        rate_per_s = self._measure()
        self.cpu_s += lap_s
        self.simpy_events += lap_s * (self._rate_per_s + rate_per_s) / 2
        self._rate_per_s = rate_per_s
        self._since_s = time.process_time()


def measure(gpus: int) -> Cost:
    """Simulate one size in this process; medians over the rounds."""
    engines = engines_for(gpus)
    each_us, each_ratio = [], []
    with ProcessPoolExecutor(1, get_context("spawn")) as bare:
        while True:
            laps = Laps(bare)
            use = bench_run(engines, STEPS, TRAJECTORIES_PER_ENGINE, sinks=(laps,)).use
            laps.end_lap()
            each_us.append(1e6 * laps.cpu_s / use.turns)
            each_ratio.append(laps.simpy_events / use.turns)
            if use.turns > ENOUGH_TURNS or len(each_us) == ROUNDS:
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
    costs: list[Cost] = []
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
    parser.add_argument("--sizes", type=int, nargs="+", help="other sizes, in GPUs")
    parser.add_argument("--production", action="store_true", help="the production run in place of the sizes")
    parser.add_argument("--steps", type=int, default=PRODUCTION_STEPS, help="of the production run")
    options = parser.parse_args()
    if options.production:
        production(options.steps)
    else:
        scale(options.sizes or (QUICK_SIZES if options.quick else SIZES))


if __name__ == "__main__":
    main()
