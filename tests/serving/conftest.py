"""The engines under test, simple costs, and one driver for both the engine and its oracle."""

import heapq
import importlib.util
import random
import sys
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from rollart.costs.interface import LinearPiece
from rollart.serving import Completion, EngineConfig, Request, Role


class BentCosts:
    """Decode time that bends upwards every `bend` tokens; prompt chunks cost their tokens and their reach.

    All coefficients are dyadic, so that sums of them are exact.
    """

    def __init__(self, bend: float = inf, scale: float = 1.0) -> None:
        self.bend, self.scale = bend, scale

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def decode(self, batch: int, context_tokens: int) -> LinearPiece:
        base = self.scale * (1 / 64 + batch / 4096)
        slope = self.scale / 2**16
        if self.bend == inf:
            return LinearPiece(base, slope, inf)
        piece = (context_tokens - 1) // self.bend
        start = piece * self.bend
        # Piece i rises by (i + 1) * slope per token, and each starts where the one before ended.
        at_start = slope * self.bend * piece * (piece + 1) / 2
        rise = slope * (piece + 1)
        return LinearPiece(base + at_start - rise * start, rise, start + self.bend)

    def mixed_s(self, batch: int, context_tokens: int, chunks: Sequence[tuple[int, int]]) -> float:
        work = sum(q / 512 + q * (c + q / 2) / 2**20 for q, c in chunks)
        if batch:
            piece = self.decode(batch, context_tokens)
            return self.scale * work + piece.base_s + piece.per_token_s * context_tokens
        return self.scale * (work + 1 / 64)


class Turn(NamedTuple):
    """A later turn of a chain: new prompt tokens, output tokens, what is kept, and the pause before it."""

    new_tokens: int
    output_tokens: int
    kept_share: float
    pause_s: float


class Outcome(NamedTuple):
    """All that a run has shown."""

    completions: list[Completion]
    replies: list[object]


class Workload:
    """A random workload: chains with groups, turns and compaction, and interventions at fixed times."""

    def __init__(self, seed: int, config: EngineConfig, *, tick_s: float = 0.0, roles: bool = False) -> None:
        self.chance = random.Random(seed)
        self.config = config
        self.tick_s = tick_s
        self.roles = roles
        self.chains = self.chance.randint(1, 14)
        self.span_s = self.chance.choice([0.1, 1.0, 5.0])

    def time(self, longest: float) -> float:
        time = self.chance.uniform(0.0, longest)
        return round(time / self.tick_s) * self.tick_s if self.tick_s else time

    def first_requests(self) -> list[tuple[float, Request, list[Turn]]]:
        capacity = self.config.kv_capacity_tokens
        longest = max(2, min(capacity // 2, 120))
        prompts = [self.chance.randint(1, longest) for _ in range(3)]
        found = []
        for chain in range(self.chains):
            group = self.chance.randrange(3)
            shared = prompts[group] if self.chance.random() < 0.8 else 0
            context = prompts[group] + (self.chance.randint(0, 20) if self.chance.random() < 0.3 else 0)
            context = min(context, capacity - 1) or 1
            turns = [
                Turn(
                    self.chance.randint(0, 30),
                    self.chance.randint(1, 40),
                    self.chance.choice([1.0, 1.0, 0.5]),
                    self.time(1.0),
                )
                for _ in range(self.chance.randrange(4))
            ]
            request = Request(
                request_id=chain * 100,
                chain=chain,
                group=group,
                shared_tokens=min(shared, context),
                context_tokens=context,
                reusable_tokens=self.chance.choice([0, context]),
                output_tokens=max(1, min(self.chance.randint(1, 60), capacity - context)),
                role=self.chance.choice(list(Role)) if self.roles else Role.BOTH,
            )
            found.append((self.time(self.span_s), request, turns))
        return found

    def interventions(self) -> list[tuple[float, str]]:
        kinds = ["abort"] * 3 + ["suspend", "resume", "update", "kill"]
        count = self.chance.choice([0, 0, 2, 6])
        found = [(self.time(3.0), self.chance.choice(kinds)) for _ in range(count)]
        return [*found, (20.0, "resume"), (20.5, "resume")]


def next_turn(last: Request, made: int, turn: Turn, capacity: int) -> Request | None:
    """The request of a chain's next turn, or None when its context no longer fits."""
    history = last.context_tokens + made
    kept = max(1, int(history * turn.kept_share))
    context = kept + turn.new_tokens
    if context + turn.output_tokens > capacity:
        return None
    return Request(
        request_id=last.request_id + 1,
        chain=last.chain,
        group=last.group,
        shared_tokens=min(last.shared_tokens, kept),
        context_tokens=context,
        reusable_tokens=kept,
        output_tokens=turn.output_tokens,
        role=last.role,
    )


def drive(engine: object, workload: Workload) -> Outcome:
    """Run a workload to its end; at equal times the caller acts before the engine."""
    agenda: list[tuple[float, int, object]] = []
    plans: dict[int, tuple[Request, list[Turn]]] = {}
    order = iter(range(10**9))
    for time, request, turns in workload.first_requests():
        heapq.heappush(agenda, (time, next(order), request))
        plans[request.request_id] = (request, turns)
    for time, kind in workload.interventions():
        heapq.heappush(agenda, (time, next(order), kind))
    outcome = Outcome([], [])
    live: list[int] = []
    pick = random.Random(5)
    while agenda or engine.next_wake < inf:
        if agenda and agenda[0][0] <= engine.next_wake:
            now, _, what = heapq.heappop(agenda)
            if isinstance(what, Request):
                engine.submit(what, now)
                live.append(what.request_id)
            else:
                _intervene(engine, what, now, live, pick, outcome)
            continue
        now = engine.next_wake
        for completion in engine.advance(now):
            outcome.completions.append(completion)
            live.remove(completion.request_id)
            request, turns = plans[completion.request_id]
            if turns:
                capacity = workload.config.kv_capacity_tokens
                follow = next_turn(request, completion.output_tokens, turns[0], capacity)
                if follow is not None:
                    plans[follow.request_id] = (follow, turns[1:])
                    heapq.heappush(agenda, (completion.time_s + turns[0].pause_s, next(order), follow))
    return outcome


def _intervene(
    engine: object, kind: object, now: float, live: list[int], pick: random.Random, outcome: Outcome
) -> None:
    if kind == "abort":
        choice = pick.random()
        if live:
            victim = live.pop(int(choice * len(live)))
            outcome.replies.append((victim, engine.abort(victim, now)))
    elif kind == "suspend":
        engine.suspend(now)
    elif kind == "resume":
        engine.resume(now)
    elif kind == "update":
        engine.update_weights(now)
    elif kind == "kill":
        outcome.replies.append(sorted(engine.kill(now)))
        live.clear()


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """The module of the slow engine."""
    spec = importlib.util.spec_from_file_location("serving_oracle", Path(__file__).with_name("oracle.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def run_workload() -> Callable[..., Outcome]:
    """The driver."""
    return drive


@pytest.fixture(scope="session")
def make_workload() -> type[Workload]:
    """The generator of random workloads."""
    return Workload


@pytest.fixture(scope="session")
def bent_costs() -> type[BentCosts]:
    """Costs whose decode time bends."""
    return BentCosts
