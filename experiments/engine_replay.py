"""How fast one engine replays: Azure's conversation trace of 2023, 1,000 and 4,000 requests on 1 and 8 replicas.

    python experiments/engine_replay.py TRACE [--costs compact] [--rounds 5] [--out experiments/results]

TRACE is AzureLLMInferenceTrace_conv.csv, plain or gzip; Qwen3-32B on two H100 a replica. Each case runs in a process
of its own, so that its peak memory is its own; the median of the rounds is shown, in CPU time. The trace is compressed
in time by the number of replicas, so that each has the same load. Writes engine-replay.json and engine-replay.png.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from rollart import api
from rollart.catalog.load import devices, models
from rollart.loadtest.cost_source import costs_from
from rollart.loadtest.deployment import Deployment
from rollart.loadtest.open_loop import replay
from rollart.loadtest.reader import read_requests
from rollart.loadtest.requests import RequestLog
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_figure, save
from rollart.report.output import write_text

MODEL, DEVICE, TP = "Qwen3-32B", "H100", 2
REQUESTS = (1000, 4000)
REPLICAS = (1, 8)


def measure(trace: Path, requests: int, replicas: int, costs: str, rounds: int) -> dict[str, Any]:
    """One case in this process: medians over the rounds, and the peak of its memory."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log = faster(read_requests(trace, limit=requests), replicas)
    deployment = Deployment(
        model=models()[MODEL], device=devices()[DEVICE], tensor_parallel=TP, costs_of=costs_from(costs)
    )
    times, wakes = [], 0
    for _ in range(rounds):
        engines = deployment.engines(replicas)
        begun = process_time()
        wakes = replay(log, engines).wakes
        times.append(process_time() - begun)
    after_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "requests": requests,
        "replicas": replicas,
        "requests_per_s": requests / median(times),
        "first_round_requests_per_s": requests / times[0],
        "wakes_per_request": wakes / requests,
        "peak_memory_mb": after_kib / 1024,
        "memory_of_the_replay_mb": (after_kib - before_kib) / 1024,
    }


def faster(log: RequestLog, times: int) -> RequestLog:
    """The log with its requests closer together."""
    requests = [request._replace(arrival_s=request.arrival_s / times) for request in log.requests]
    return RequestLog(name=log.name, requests=requests, prefix_tokens=log.prefix_tokens)


def measure_apart(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All cases, each in a process of its own."""
    rows = []
    for requests in REQUESTS:
        for replicas in REPLICAS:
            words = [str(options.trace), "--costs", options.costs, "--rounds", str(options.rounds)]
            case = ["--case", f"{requests},{replicas}"]
            done = subprocess.run([sys.executable, __file__, *words, *case], capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
    return rows


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Requests a second by case."""
    figure, axes = new_figure(f"Azure conversations replayed, {MODEL} on {TP} x {DEVICE} a replica")
    for place, row in enumerate(rows):
        axes.bar(place, row["requests_per_s"], 0.6, color=SERIES_COLOURS[0])
        text = f"{row['wakes_per_request']:.1f} wakes a request"
        axes.annotate(text, (place, row["requests_per_s"]), (0, 4), textcoords="offset points", ha="center")
    axes.set_xticks(range(len(rows)), [f"{row['requests']:,} requests, {row['replicas']} replicas" for row in rows])
    label(axes, "", "requests per second of the simulator")
    save(figure, path)


def main() -> None:
    """Measure, write the files, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--costs", default="compact", help="roofline, compact or tables")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        requests, replicas = map(int, options.case.split(","))
        print(json.dumps(measure(options.trace, requests, replicas, options.costs, options.rounds)))
        return
    rows = measure_apart(options)
    result = {"code_version": api.code_version(), "costs": options.costs, "rounds": options.rounds, "cases": rows}
    write_text(options.out / "engine-replay.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    draw(options.out / "engine-replay.png", rows)
    print("| requests | replicas | requests/s | first round | wakes/request | peak MB | of it the replay |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['requests']:,} | {row['replicas']} | {row['requests_per_s']:,.0f} "
            f"| {row['first_round_requests_per_s']:,.0f} | {row['wakes_per_request']:.2f} "
            f"| {row['peak_memory_mb']:.0f} | {row['memory_of_the_replay_mb']:.0f} |"
        )


if __name__ == "__main__":
    main()
