"""What the executor costs beside a bare vLLM loop: generated tokens per second, on the same engine, in turns.

    .venv/bin/python experiments/executor_overhead.py --repetitions 41 --trajectories 128

Three ways in turns. *Bare*: in the engine's own process one coroutine a trajectory, straight on `AsyncLLM.generate`
with token ids, as vLLM's documentation shows it. *Trimmed*: the same with the executor's two short cuts (prompts that
need no rendering, sampling parameters that are not copied in depth), which tells what these gain and what messages
cost. *Executor*: the way of a run, the token store and the engine fleet in the driver, batched messages to the actor
and back. Observations are fixed tokens everywhere (environments are not part of this figure), sampling is the
same, and the prefix cache is emptied before each measurement. A measurement takes a second and the machine's noise is
a fifth of it, so it takes dozens for a median that holds. Writes experiments/results/executor_overhead.json.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import ray
from scipy.stats import bootstrap

from rollart import api
from rollart.domain.commands import GenerateTurn, ResetEnvironment
from rollart.domain.events import Event, TurnGenerated
from rollart.exec.real.cluster import connect, disconnect
from rollart.exec.real.engines.actor import EngineProcess
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.launch import Launcher
from rollart.exec.real.mailbox import Mailbox
from rollart.exec.real.model_folder import model_folder
from rollart.exec.real.tokens import tokenizer_of
from rollart.exec.real.wire import Exchange

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "experiments/results/executor_overhead.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many trajectories at once, each of so many turns."""

    task: str
    trajectories: int
    prompt: list[int]
    turns: int
    turn_tokens: int
    observation: list[int]

    @property
    def tokens(self) -> int:
        """Tokens that are generated."""
        return self.trajectories * self.turns * self.turn_tokens


class MeasuredEngine(EngineProcess):
    """An engine that can also run a load by itself."""

    async def bare(self, load: Load, *, trimmed: bool) -> float:
        """Seconds of a load without any of the executor."""
        parameters = copy(self._sampling.turn(load.task, load.turn_tokens))
        parameters.skip_clone = trimmed
        prompt = self._prompt if trimmed else _raw
        began_s = time.perf_counter()
        await asyncio.gather(
            *(self._trajectory(load, number, prompt, parameters) for number in range(load.trajectories))
        )
        return time.perf_counter() - began_s

    async def _trajectory(self, load: Load, number: int, prompt: Callable[[list[int]], Any], parameters: Any) -> None:
        tokens = list(load.prompt)
        for turn in range(load.turns):
            name = f"bare-{number}-{turn}"
            async for output in self._engine.generate(prompt(tokens), parameters, name):
                last = output
            tokens += [*last.outputs[0].token_ids, *load.observation]

    async def forget(self) -> None:
        """Empty the prefix cache."""
        await self._engine.reset_prefix_cache()


def _raw(tokens: list[int]) -> dict[str, list[int]]:
    return {"prompt_token_ids": tokens}


class Rollout:
    """Drives a load through token store and engine fleet, as the driver does."""

    def __init__(self, actor: Any, exchange: Exchange) -> None:
        self._episodes = Episodes()
        self._turns: dict[int, int] = {}
        self._command = 0
        self._done = asyncio.Event()
        self._load: Load | None = None
        self._open: dict[int, int] = {}

        async def start(index: int, incarnation: int, received: Any, lost: Any, *, suspended: bool) -> Mailbox:
            del index, incarnation, suspended
            return Mailbox(actor, exchange, received, lost, _give_up)

        limits = {"FrozenLake": 1, "counting": 32}
        self._fleet = EngineFleet(1, start, limits, self._episodes, None, _never, self._report, print)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Attach to the engine."""
        await self._fleet.start()

    async def run(self, load: Load) -> float:
        """Seconds of a load."""
        self._load, self._left = load, load.trajectories
        self._done.clear()
        began_s = time.perf_counter()
        for number in range(load.trajectories):
            self._episodes.begin(
                ResetEnvironment(
                    id=0,
                    trajectory=number,
                    task=load.task,
                    prompt=0,
                    group=number,
                    member=0,
                    attempt=0,
                    version=0,
                    timeout_s=1.0,
                )
            )
            self._episodes.ready(number, list(load.prompt))
            self._turns[number] = 0
            self._generate(number)
        await self._done.wait()
        return time.perf_counter() - began_s

    def _generate(self, trajectory: int) -> None:
        self._command += 1
        self._open[self._command] = trajectory
        context = len(self._episodes[trajectory].tokens)
        self._fleet.generate(
            GenerateTurn(
                id=self._command,
                trajectory=trajectory,
                group=trajectory,
                turn=self._turns[trajectory],
                engine=0,
                incarnation=0,
                prefill_engine=None,
                context_tokens=context,
                reusable_tokens=0,
                shared_tokens=0,
                partial_tokens=0,
                max_tokens=512 - context,
            )
        )

    def _report(self, event: Event) -> None:
        assert isinstance(event, TurnGenerated)
        assert self._load is not None
        trajectory = self._open.pop(event.command_id)
        self._turns[trajectory] += 1
        if self._turns[trajectory] < self._load.turns:
            self._episodes[trajectory].observe(list(self._load.observation))
            self._generate(trajectory)
            return
        self._left -= 1
        if not self._left:
            self._done.set()


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """What holds the true median with 90 % confidence, by bootstrap."""
    found = bootstrap((ratios,), np.median, confidence_level=0.9, method="percentile", rng=0).confidence_interval
    return float(found.low), float(found.high)


def _give_up(error: Exception) -> None:
    raise SystemExit(f"the driver failed: {error!r}")


def _never(work: Any) -> None:
    raise AssertionError(work)


async def measure(actor: Any, loads: dict[str, Load], repetitions: int) -> dict[str, Any]:
    """All three ways in turns, after one of each to warm up."""
    rollout = Rollout(actor, await Exchange.opened("127.0.0.1"))
    await rollout.start()
    found: dict[str, Any] = {}
    for name, load in loads.items():
        ways: dict[str, Callable[[], Any]] = {
            "bare": partial(actor.bare.remote, load, trimmed=False),
            "trimmed": partial(actor.bare.remote, load, trimmed=True),
            "executor": partial(rollout.run, load),
        }
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for repetition in range(repetitions + 1):
            for way, once in ways.items():
                await actor.forget.remote()
                seconds = await once()
                if repetition:
                    rates[way].append(load.tokens / seconds)
        found[name] = {f"{way}_tokens_per_s": median(each) for way, each in rates.items()}
        for way in ("bare", "trimmed"):
            ratios = [there / here for there, here in zip(rates["executor"], rates[way], strict=True)]
            found[name] |= {
                f"over_{way}": median(ratios),
                f"over_{way}_interval": interval(ratios),
                f"over_{way}_each": ratios,
            }
        print(name, {key: value for key, value in found[name].items() if not key.endswith("each")}, flush=True)
    return found


def main() -> None:
    """Start Ray and one engine, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--trajectories", type=int, default=64)
    options = parser.parse_args()
    scenario = api.load_scenario(ROOT / "experiments/scenarios/laptop.yaml")
    job, settings = scenario.job(), scenario.execution()
    with tempfile.TemporaryDirectory() as folder:
        model = model_folder(settings, Path(folder), 0)
        tokenizer = tokenizer_of(settings.tokenizer, model, job.model.vocabulary)
        lake = tokenizer.observation("SFFF\nFHFH\nFFFH\nHFFG\n0,0:", first=True)
        count = options.trajectories
        loads = {
            "decode-heavy": Load(
                task="counting",
                trajectories=count,
                prompt=tokenizer.observation("#1", first=True),
                turns=1,
                turn_tokens=32,
                observation=[],
            ),
            "many turns": Load(
                task="FrozenLake",
                trajectories=count,
                prompt=lake,
                turns=12,
                turn_tokens=1,
                observation=tokenizer.observation("1,1:", first=False),
            ),
        }
        connect(job.cluster, None)
        try:
            launcher = Launcher(job, settings, model, tokenizer, Path(folder), "rollart-overhead")
            actor = launcher.engine_process(0, 0, MeasuredEngine)
            ray.get(actor.start.remote(0, suspended=False))
            found = asyncio.run(measure(actor, loads, options.repetitions))
        finally:
            disconnect()
    result = {"trajectories": options.trajectories, "repetitions": options.repetitions, **found}
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
