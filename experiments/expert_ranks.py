"""A log of data-parallel ranks that share experts: blind, and with the cost of an exchange fitted on half of it.

    python experiments/expert_ranks.py LOG [--costs compact] [--out experiments/results]

LOG is that of vLLM 0.19 with Qwen3-30B-A3B on two RTX PRO 6000 (data parallel 2, expert parallel). Every other request,
by arrival, is used to choose what a dispatch or combine takes beyond a bare collective, so that their mean time per
output token is met; the errors are those of the other requests. Writes expert-ranks.json.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from scipy.optimize import brentq

from rollart import api
from rollart.catalog.load import devices, models
from rollart.loadtest.cost_source import costs_from
from rollart.loadtest.deployment import Deployment
from rollart.loadtest.latencies import Quantities, error_pct
from rollart.loadtest.open_loop import Served, replay
from rollart.loadtest.reader import read_requests
from rollart.loadtest.requests import Latency, RequestLog
from rollart.report.output import write_text

MOST_EXTRA_S = 5e-4
FITTED, SCORED = slice(0, None, 2), slice(1, None, 2)
WITHIN_S = 1e-7


def simulate(log: RequestLog, costs: str, extra_s: float) -> Served:
    """The log on two ranks in step."""
    deployment = Deployment(
        model=models()["Qwen3-30B-A3B"],
        device=devices()["RTX PRO 6000"],
        max_num_seqs=128,
        max_num_batched_tokens=2048,
        data_parallel=2,
        exchange_extra_s=extra_s,
        costs_of=costs_from(costs),
    )
    return replay(log, deployment.engines())


def errors(served: Served, log: RequestLog, part: slice) -> dict[str, Any]:
    """The error table over a part of the requests; the duration is that of all of them."""
    ends = [request.arrival_s + met.last_token_s for request, met in zip(log.requests, log.measured, strict=True)]
    met, measured = served.latencies[part], log.measured[part]
    return error_pct(Quantities(met), served.duration_s, Quantities(measured), max(ends))


def mean_tpot_s(latencies: list[Latency]) -> float:
    """Mean over requests of the time per output token."""
    gaps = [gap for met in latencies if (gap := met.per_token_s) is not None]
    return sum(gaps) / len(gaps)


def fitted_extra_s(log: RequestLog, costs: str) -> float:
    """Seconds a dispatch or combine takes longer, by the fitted half."""
    wanted_s = mean_tpot_s(log.measured[FITTED])

    def gap_s(extra_s: float) -> float:
        return mean_tpot_s(simulate(log, costs, extra_s).latencies[FITTED]) - wanted_s

    return float(brentq(gap_s, 0.0, MOST_EXTRA_S, xtol=WITHIN_S)) if gap_s(0.0) < 0 else 0.0


def main() -> None:
    """Fit, score, write the file, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--costs", default="compact", help="roofline, compact or tables")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    log = read_requests(options.log)
    blind = simulate(log, options.costs, 0.0)
    extra_s = fitted_extra_s(log, options.costs)
    after = simulate(log, options.costs, extra_s)
    tables = {
        "blind, all requests": errors(blind, log, slice(None)),
        "blind, scored half": errors(blind, log, SCORED),
        f"fitted ({extra_s * 1e6:.0f} us an exchange), scored half": errors(after, log, SCORED),
    }
    result = {"code_version": api.code_version(), "costs": options.costs, "exchange_extra_s": extra_s, "errors": tables}
    write_text(options.out / "expert-ranks.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    columns = "first token: mean | p50 | per token: mean | p50 | mean abs. | end to end: mean | mean abs. | duration"
    print(f"| error, % | {columns} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, of in tables.items():
        first, gap, whole = of["ttft"], of["tpot"], of["e2e"]
        cells = (first["mean"], first["p50"], gap["mean"], gap["p50"], gap["mape"], whole["mean"], whole["mape"])
        print(f"| {name} | {' | '.join(f'{cell:+.1f}' for cell in (*cells, of['duration']))} |")


if __name__ == "__main__":
    main()
