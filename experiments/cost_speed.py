"""How fast cost models answer, and what that makes of the simulator: compact and tables against the roofline.

    ROLLART_OPERATORS=TABLES .venv/bin/python experiments/cost_speed.py [--engines 4]

One process, CPU seconds, the three sources in turn in every round; ratios are medians of the rounds' ratios. The calls
are those that a busy engine makes: decode at 64 requests of 2,000 tokens, mixed with one chunk of 500 tokens beside
them. The simulator is that of `rollart bench` with H100 in the place of H800, which has no tables; the first run of
each source, which also builds its look-ups, is left out.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rollart.benchmark import _PROFILE, bench_job
from rollart.catalog.load import devices, models
from rollart.costs.engine_shape import EngineShape
from rollart.costs.interface import EngineCosts
from rollart.costs.select import COST_SOURCES, engine_costs
from rollart.domain.job import Job
from rollart.sim import simulate
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.profile_workload import ProfileWorkload

ROUNDS, CALLS = 5, 100_000
BATCH, CONTEXT = 64, 128_000


def decode_ns(costs: EngineCosts) -> float:
    """Of one decode()."""
    costs.decode(BATCH, CONTEXT)
    started = time.process_time()
    for context in range(CONTEXT, CONTEXT + CALLS):
        costs.decode(BATCH, context)
    return (time.process_time() - started) / CALLS * 1e9


def mixed_ns(costs: EngineCosts) -> float:
    """Of one mixed_s() with one chunk."""
    chunks = [(500, 1500)]
    costs.mixed_s(BATCH, CONTEXT, chunks)
    started = time.process_time()
    for context in range(CONTEXT, CONTEXT + CALLS):
        costs.mixed_s(BATCH, context, chunks)
    return (time.process_time() - started) / CALLS * 1e9


def h100_job(engines: int, source: str) -> Job:
    """The benchmark's job on H100 under a source of costs."""
    job = bench_job(engines, 1)
    pools = {name: replace(pool, device=devices()["H100"]) for name, pool in job.cluster.pools.items()}
    return replace(job, cluster=replace(job.cluster, pools=pools), costs=source)


def turns_per_s(engines: int, source: str) -> float:
    """Turns per CPU second of the simulator, run log included."""
    workload = ProfileWorkload(profile_from_mapping(_PROFILE, "bench profile"), 0)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        use = simulate(h100_job(engines, source), workload, log_path=Path(folder) / "runlog.parquet").use
        return use.turns / (time.process_time() - started)


def show(what: str, unit: str, measure: Callable[[str], float]) -> None:
    """Print medians and ratios to the roofline."""
    rounds = [{source: measure(source) for source in COST_SOURCES} for _ in range(ROUNDS)]
    for source in COST_SOURCES:
        value = statistics.median(one[source] for one in rounds)
        ratio = statistics.median(one[source] / one["roofline"] for one in rounds)
        print(f"{what:10} {source:9} {value:10.0f} {unit}  {ratio:5.2f} of the roofline", flush=True)


def main() -> None:
    """Measure calls, then the simulator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engines", type=int, default=4)
    options = parser.parse_args()
    shape = EngineShape(model=models()["Qwen3-8B"], device=devices()["H100"])
    costs: dict[str, EngineCosts] = {source: engine_costs(shape, source) for source in COST_SOURCES}
    show("decode", "ns", lambda source: decode_ns(costs[source]))
    show("mixed_s", "ns", lambda source: mixed_ns(costs[source]))
    for source in COST_SOURCES:
        turns_per_s(options.engines, source)
    show("simulator", "turns/s", lambda source: turns_per_s(options.engines, source))


if __name__ == "__main__":
    main()
