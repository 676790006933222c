"""How many requests a second the engine model serves on one core, next to bare heap operations.

    python experiments/engine_speed.py [--requests 20000] [--repeats 5]

Chains of several turns run in a closed loop on a bare heap: each turn finds its history in the prefix cache,
computes what is new, decodes, and comes back after a pause.  The calls of that run are recorded and repeated on
a fresh engine, so that the time is that of the engine alone.  Prints, per setting, the mean batch, requests per
second, microseconds per request (best of the repeats), the same in pushes and pops of a heap timed in between,
and wake-ups per request.
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
# Chains, KV blocks and scheduling lag; in the last one chains are evicted before they return.
SETTINGS = ((100, 60_000, 0), (300, 60_000, 0), (300, 60_000, 1), (300, 20_000, 0))


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
        return 6e-3 + 2e-5 * batch + 4e-8 * context_tokens + 2.5e-5 * sum([q for q, _ in chunks])


class Turn:
    """A turn that will be submitted, as plain values."""

    __slots__ = ("chain", "context", "index", "output", "reusable", "turn")

    def __init__(self, index: int, chain: int, turn: int, context: int, reusable: int, output: int) -> None:
        self.index, self.chain, self.turn = index, chain, turn
        self.context, self.reusable, self.output = context, reusable, output

    def request(self) -> Request:
        """A fresh request for it."""
        return Request(
            request_id=self.index,
            chain=self.chain,
            group=self.chain // GROUP,
            shared_tokens=PROMPT_TOKENS,
            context_tokens=self.context,
            reusable_tokens=self.reusable,
            output_tokens=self.output,
        )


def engine_of(kv_blocks: int, lag: int) -> Engine:
    """A fresh engine with the limits of a common deployment."""
    config = EngineConfig(max_num_seqs=256, max_num_batched_tokens=8192, kv_blocks=kv_blocks, scheduling_lag=lag)
    return Engine(config, StraightCosts())


def recorded(chains: int, requests: int, engine: Engine) -> list[tuple[float, Turn | None]]:
    """Run the closed loop; return its calls, each a submission or (None) a wake-up."""
    chance = random.Random(1)
    calls: list[tuple[float, Turn | None]] = []
    agenda: list[tuple[float, int, int, int, int]] = []
    for chain in range(chains):
        heappush(agenda, (chance.uniform(0.0, PAUSE_S), chain, 0, PROMPT_TOKENS, 0))
    turns: list[Turn] = []
    next_chain = chains
    while len(turns) < requests or engine.next_wake < inf:
        if agenda and agenda[0][0] <= engine.next_wake and len(turns) < requests:
            now, chain, index, context, reusable = heappop(agenda)
            context += chance.randint(*NEW_TOKENS)
            turn = Turn(len(turns), chain, index, context, reusable, chance.randint(*OUTPUT_TOKENS))
            turns.append(turn)
            calls.append((now, turn))
            engine.submit(turn.request(), now)
            continue
        calls.append((engine.next_wake, None))
        for done in engine.advance(engine.next_wake):
            turn = turns[done.request_id]
            back_s = done.time_s + chance.expovariate(1 / PAUSE_S)
            context = turn.context + turn.output
            if turn.turn + 1 < TURNS:
                heappush(agenda, (back_s, turn.chain, turn.turn + 1, context, context))
            else:
                heappush(agenda, (back_s, next_chain, 0, PROMPT_TOKENS, 0))
                next_chain += 1
    return calls


def replayed_s(calls: list[tuple[float, Turn | None]], engine: Engine) -> float:
    """Seconds of this process that the engine takes for the calls."""
    ready = [(now, turn.request() if turn is not None else None) for now, turn in calls]
    submit, advance = engine.submit, engine.advance
    started = time.process_time()
    for now, request in ready:
        if request is None:
            advance(now)
        else:
            submit(request, now)
    return time.process_time() - started


def heap_pair_s(pairs: int = 200_000) -> float:
    """Seconds of one push and one pop on a heap of a thousand entries."""
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
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("chains     KV lag  batch    req/s  us/req  heap pairs/req  wakes/req  (heap pair us)")
    for chains, kv_blocks, lag in SETTINGS:
        engine = engine_of(kv_blocks, lag)
        calls = recorded(chains, options.requests, engine)
        wakes = sum(turn is None for _, turn in calls)
        usage = engine.usage(calls[-1][0])
        each_s, pair_s = inf, inf
        for _ in range(options.repeats):
            pair_s = min(pair_s, heap_pair_s())
            each_s = min(each_s, replayed_s(calls, engine_of(kv_blocks, lag)) / options.requests)
        print(
            f"{chains:>6} {kv_blocks:>6} {lag:>3} {usage.decode_tokens / usage.iterations:>6.1f}"
            f" {1 / each_s:>8.0f} {each_s * 1e6:>7.2f} {each_s / pair_s:>15.1f}"
            f" {wakes / options.requests:>10.2f}  ({pair_s * 1e6:.2f})"
        )


if __name__ == "__main__":
    main()
