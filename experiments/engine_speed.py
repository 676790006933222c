"""How many requests a second the engine model serves on one core, next to bare heap operations.

    python experiments/engine_speed.py [--requests 40000] [--repeats 3]

Chains of several turns run in a closed loop: each turn finds its history in the prefix cache, computes what is
new, decodes, and comes back after a pause.  The driver is a bare heap.  Prints, per batch size, requests per
second, microseconds and wake-ups per request, and the time of a request in heap push/pop pairs of the same run.
"""

import argparse
import random
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

from rollart.costs.interface import LinearPiece
from rollart.serving import Engine, EngineConfig, Request

PROMPT_TOKENS = 500
NEW_TOKENS = (40, 160)
OUTPUT_TOKENS = (50, 350)
TURNS = 6
PAUSE_S = 2.0
GROUP = 8


class StraightCosts:
    """Roughly an 8-billion model on one device; constant coefficients keep the cost model out of the timing."""

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:  # noqa: ARG002
        """Weights once, then the KV that is read."""
        return LinearPiece(6e-3 + 2e-5 * batch, 4e-8, inf)

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Decode time plus a constant per new token."""
        return 6e-3 + 2e-5 * batch + 4e-8 * context_tokens + 2.5e-5 * sum(q for q, _ in chunks)


def run(chains: int, requests: int, kv_blocks: int, lag: int, seed: int = 1) -> tuple[float, int, Engine]:
    """Serve this many requests; return seconds of this process, wake-ups, and the engine."""
    chance = random.Random(seed)
    config = EngineConfig(max_num_seqs=256, max_num_batched_tokens=8192, kv_blocks=kv_blocks, scheduling_lag=lag)
    engine = Engine(config, StraightCosts())
    draws = [
        (chance.randint(*NEW_TOKENS), chance.randint(*OUTPUT_TOKENS), chance.expovariate(1 / PAUSE_S))
        for _ in range(requests)
    ]
    agenda: list[tuple[float, int, int, int, int]] = []
    for chain in range(chains):
        heappush(agenda, (chance.uniform(0.0, PAUSE_S), chain, 0, PROMPT_TOKENS, 0))
    slot_of: dict[int, tuple[int, int, int]] = {}
    submitted = completed = wakes = 0
    next_chain = chains
    started = time.process_time()
    while completed < requests:
        if agenda and agenda[0][0] <= engine.next_wake and submitted < requests:
            now, chain, turn, context, reusable = heappop(agenda)
            new, output, _ = draws[submitted]
            context += new
            request = Request(
                request_id=submitted,
                chain=chain,
                group=chain // GROUP,
                shared_tokens=PROMPT_TOKENS,
                context_tokens=context,
                reusable_tokens=reusable,
                output_tokens=output,
            )
            slot_of[submitted] = (chain, turn, context)
            submitted += 1
            engine.submit(request, now)
            continue
        wakes += 1
        for done in engine.advance(engine.next_wake):
            completed += 1
            chain, turn, context = slot_of.pop(done.request_id)
            back_s = done.time_s + draws[done.request_id][2]
            if turn + 1 < TURNS:
                context += done.output_tokens
                heappush(agenda, (back_s, chain, turn + 1, context, context))
            else:
                heappush(agenda, (back_s, next_chain, 0, PROMPT_TOKENS, 0))
                next_chain += 1
    return time.process_time() - started, wakes, engine


def heap_pair_s(pairs: int = 1_000_000) -> float:
    """Seconds of one push and pop on a heap of a thousand entries."""
    heap: list[tuple[float, int]] = []
    for i in range(1000):
        heappush(heap, (i * 0.37 % 1.0, i))
    started = time.process_time()
    for i in range(pairs):
        heappush(heap, (i * 0.61803 % 1.0, i))
        heappop(heap)
    return (time.process_time() - started) / pairs


def main() -> None:
    """Print one line per setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    pair_s = heap_pair_s()
    print(f"heap push + pop: {pair_s * 1e6:.3f} us")
    print(
        f"{'chains':>6} {'KV':>6} {'lag':>3} {'batch':>6} {'req/s':>8} {'us/req':>7} {'pairs/req':>9} {'wakes/req':>9}"
    )
    for chains, kv_blocks, lag in ((100, 60_000, 0), (300, 60_000, 0), (300, 60_000, 1), (300, 20_000, 0)):
        runs = [run(chains, options.requests, kv_blocks, lag) for _ in range(options.repeats)]
        seconds, wakes, engine = min(runs, key=lambda found: found[0])
        usage = engine.usage(engine.next_wake if engine.next_wake < inf else 1e9)
        batch = usage.decode_tokens / usage.iterations
        each_s = seconds / options.requests
        print(
            f"{chains:>6} {kv_blocks:>6} {lag:>3} {batch:>6.1f} {1 / each_s:>8.0f} {each_s * 1e6:>7.2f}"
            f" {each_s / pair_s:>9.1f} {wakes / options.requests:>9.2f}"
        )


if __name__ == "__main__":
    main()
