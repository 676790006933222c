"""A hand-made run: a few trajectories, two engines and a trainer, with every kind of trouble in it.

It obeys the protocol but has no model of anything: durations are drawn from a seeded generator.
"""

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause, End
from rollart.runlog.header import (
    EngineEntry,
    EnvironmentEntry,
    PoolEntry,
    RewardEntry,
    RunHeader,
    TrainerEntry,
)
from rollart.runlog.samples import (
    EngineSample,
    EnvironmentSample,
    LinkSample,
    RewardSample,
    TrainerSample,
)
from rollart.runlog.writer import RunLogWriter

ENGINES, SLOTS, BATCH, TURNS = 2, 6, 4, 3
TASKS = ("maze", "math")


def header(steps: int = 4, seed: int = 0) -> RunHeader:
    """The header of the toy run."""
    return RunHeader(
        driver="sim",
        policy="toy",
        seed=seed,
        steps=steps,
        warmup_steps=1,
        scenario="toy",
        code_version="0.0",
        controller={"staleness": {"bound": 1}},
        pools=(
            PoolEntry(name="rollout", device="H20", devices=4, price_per_hour=36.0),
            PoolEntry(name="train", device="H800", devices=8, price_per_hour=72.0),
        ),
        engines=tuple(
            EngineEntry(engine=each, group="g", pool="rollout", devices=2, role="both") for each in range(ENGINES)
        ),
        trainer=TrainerEntry(pool="train", devices=8),
        tasks=TASKS,
        environment=EnvironmentEntry(slots=SLOTS, cores=100.0, price_per_core_hour=0.36),
        reward=RewardEntry(price_per_second=0.5),
    )


@dataclass
class Episode:
    """What the toy controller knows of one trajectory."""

    number: int
    start_version: int
    turn: int = 0
    attempt: int = 0
    open_turn: int | None = None
    context_tokens: int = 100


@dataclass
class ToyRun:
    """Both sides of the protocol in one place; `play` writes a whole run."""

    writer: RunLogWriter
    steps: int = 4
    seed: int = 0
    lose_engine_at_s: float | None = 15.0
    now: float = 0.0
    version: int = 0
    step: int = 0
    live: dict[int, Episode] = field(default_factory=dict)
    scored: list[Episode] = field(default_factory=list)
    incarnations: list[int] = field(default_factory=lambda: [0] * ENGINES)
    down: set[int] = field(default_factory=set)
    training: bool = False
    stopped: bool = False

    def __post_init__(self) -> None:
        self.ids, self.numbers, self.ties = count(), count(), count()
        self.random = random.Random(self.seed)
        self.heap: list[tuple[float, int, Callable[[], e.Event | None]]] = []
        self.orders: dict[int, c.Command] = {}
        self.to_resume = 0
        self.busy_s = {"engine": 0.0, "trainer": 0.0}

    def play(self) -> None:
        """From RunStarted to StopRun."""
        self.heard(e.RunStarted())
        if self.lose_engine_at_s is not None:
            self.at(self.lose_engine_at_s, self.lose)
        while self.heap and not self.stopped:
            self.now, _, happen = heapq.heappop(self.heap)
            event = happen()
            if event is not None:
                self.heard(event)

    def at(self, delay_s: float, happen: Callable[[], e.Event | None]) -> None:
        heapq.heappush(self.heap, (self.now + delay_s, next(self.ties), happen))

    def heard(self, event: e.Event) -> None:
        cause = self.writer.event(self.now, event)
        self.writer.commands(self.now, list(self.decide(event)), cause)
        if isinstance(event, e.TrainingEnded):
            self.sample()

    # The controller

    def decide(self, event: e.Event) -> Iterator[c.Command]:
        order = self.orders.pop(event.command_id, None) if isinstance(event, e.Answer) else None
        number = getattr(order, "trajectory", None)
        episode = self.live.get(number) if number is not None else None
        if isinstance(event, e.RunStarted):
            for _ in range(SLOTS):
                yield from self.begin()
        elif isinstance(event, e.EnvironmentReady | e.TimerFired | e.EnvironmentStepped | e.EnvironmentFailed):
            yield from self.environment(event, episode)
        elif isinstance(event, e.TurnGenerated) and episode is not None:
            episode.open_turn = None
            episode.context_tokens += event.output_tokens
            yield self.order(c.StepEnvironment(id=next(self.ids), trajectory=number, turn=episode.turn, timeout_s=9))
        elif isinstance(event, e.TrajectoryScored) and episode is not None:
            yield self.order(c.CloseEnvironment(id=next(self.ids), trajectory=number))
            self.scored.append(episode)
            yield from self.train_if_ready()
        elif isinstance(event, e.EnvironmentClosed):
            if all(each.number != number for each in self.retries.values()):
                yield from self.begin()
        elif isinstance(event, e.EngineLost):
            yield from self.migrate(event)
        else:
            yield from self.weights(event, order)

    def begin(self) -> Iterator[c.Command]:
        number = next(self.numbers)
        self.live[number] = Episode(number, self.version)
        yield self.reset(self.live[number])

    def reset(self, episode: Episode) -> c.Command:
        number = episode.number
        return self.order(
            c.ResetEnvironment(
                id=next(self.ids),
                trajectory=number,
                task=TASKS[number % 2],
                prompt=number,
                group=number,
                member=0,
                attempt=episode.attempt,
                version=episode.start_version,
                timeout_s=60,
            )
        )

    def environment(self, event: e.Event, episode: Episode | None) -> Iterator[c.Command]:
        if isinstance(event, e.TimerFired):
            yield self.reset(self.retries.pop(event.command_id))
        elif episode is None:
            return
        elif isinstance(event, e.EnvironmentFailed):
            episode.attempt += 1
            episode.turn = 0
            yield self.order(c.CloseEnvironment(id=next(self.ids), trajectory=episode.number))
            timer = c.SetTimer(id=next(self.ids), delay_s=0.5)
            self.retries[timer.id] = episode
            yield self.order(timer)
        elif isinstance(event, e.EnvironmentStepped) and event.done:
            yield self.order(
                c.ScoreTrajectory(id=next(self.ids), trajectory=episode.number, attempt=episode.attempt, timeout_s=9)
            )
        else:
            episode.turn += isinstance(event, e.EnvironmentStepped)
            wanted = episode.number % ENGINES
            yield self.generate(episode, 1 - wanted if wanted in self.down else wanted, 0)

    @property
    def retries(self) -> dict[int, Episode]:
        return self.__dict__.setdefault("_retries", {})

    def generate(self, episode: Episode, engine: int, partial_tokens: int) -> c.Command:
        episode.open_turn = next(self.ids)
        return self.order(
            c.GenerateTurn(
                id=episode.open_turn,
                trajectory=episode.number,
                group=episode.number,
                turn=episode.turn,
                engine=engine,
                incarnation=self.incarnations[engine],
                prefill_engine=None,
                context_tokens=episode.context_tokens,
                reusable_tokens=0,
                shared_tokens=0,
                partial_tokens=partial_tokens,
                max_tokens=1000,
            )
        )

    def train_if_ready(self) -> Iterator[c.Command]:
        if self.training or len(self.scored) < BATCH:
            return
        stale = [each for each in self.scored if self.version - each.start_version > 1]
        fresh = [each for each in self.scored if self.version - each.start_version <= 1]
        for episode in stale:
            yield self.end(episode, End.STALE)
        self.scored = fresh
        if len(fresh) < BATCH:
            return
        batch, self.scored = fresh[:BATCH], fresh[BATCH:]
        for episode in batch:
            yield self.end(episode, End.TRAINED)
        self.training = True
        self.step += 1
        yield self.order(
            c.TrainBatch(
                id=next(self.ids),
                step=self.step,
                version=self.step,
                installed=self.version,
                trajectories=tuple(each.number for each in batch),
                start_versions=tuple(each.start_version for each in batch),
                context_tokens=tuple(each.context_tokens for each in batch),
            )
        )

    def end(self, episode: Episode, end: End) -> c.Command:
        del self.live[episode.number]
        return c.EndTrajectory(id=next(self.ids), trajectory=episode.number, end=end)

    def weights(self, event: e.Event, order: c.Command | None) -> Iterator[c.Command]:
        if isinstance(event, e.TrainingEnded):
            self.training = False
            if self.step == self.steps:
                yield from self.stop()
            else:
                yield self.order(c.PushWeights(id=next(self.ids), version=event.version, broadcast=False))
        elif isinstance(event, e.WeightsPushed):
            self.version = event.version
            up = [engine for engine in range(ENGINES) if engine not in self.down]
            self.to_resume += len(up)
            for engine in up:
                yield self.order(self.to(c.SuspendEngine, engine, release_memory=False))
            yield from self.drop_oldest()
        elif isinstance(event, e.EngineSuspended | e.EngineStarted):
            assert isinstance(order, c.EngineCommand)
            self.down.discard(order.engine)
            yield self.order(self.to(c.UpdateEngine, order.engine, version=self.version, source=c.WeightSource.STORE))
        elif isinstance(event, e.EngineUpdated):
            assert isinstance(order, c.EngineCommand)
            yield self.order(self.to(c.ResumeEngine, order.engine))
        elif isinstance(event, e.EngineResumed):
            self.to_resume -= 1
            if not self.to_resume:
                yield from self.train_if_ready()

    def to(self, kind: type[c.EngineCommand], engine: int, **fields: object) -> c.EngineCommand:
        return kind(id=next(self.ids), engine=engine, incarnation=self.incarnations[engine], **fields)

    def drop_oldest(self) -> Iterator[c.Command]:
        """One generating trajectory is called surplus: abort it and close its environment."""
        chosen = next((each for each in self.live.values() if each.open_turn is not None), None)
        if chosen is None:
            return
        engine = self.orders[chosen.open_turn].engine
        yield self.order(self.to(c.AbortGeneration, engine, target=chosen.open_turn, trajectory=chosen.number))
        self.orders.pop(chosen.open_turn)
        yield self.end(chosen, End.SURPLUS)
        yield self.order(c.CloseEnvironment(id=next(self.ids), trajectory=chosen.number))

    def migrate(self, event: e.EngineLost) -> Iterator[c.Command]:
        self.incarnations[event.engine] += 1
        self.down.add(event.engine)
        for command in event.commands:
            episode = self.live[self.orders.pop(command).trajectory]
            yield self.generate(episode, 1 - event.engine, 5)
        self.to_resume += 1
        yield self.order(self.to(c.RestartEngine, event.engine))

    def stop(self) -> Iterator[c.Command]:
        for episode in list(self.live.values()):
            yield self.end(episode, End.UNFINISHED)
        self.stopped = True
        yield c.StopRun(id=next(self.ids))

    # The workers

    def order(self, command: c.Command) -> c.Command:
        self.orders[command.id] = command
        delay_s, answer = self.carry_out(command)
        self.at(delay_s, lambda: answer if command.id in self.orders else None)
        return command

    def carry_out(self, command: c.Command) -> tuple[float, e.Event]:
        about = {"command_id": command.id}
        draw = self.random.expovariate
        if isinstance(command, c.ResetEnvironment):
            if self.random.random() < 0.1:
                return 0.3, e.EnvironmentFailed(cause=Cause.TIMEOUT, **about)
            return draw(1.0), e.EnvironmentReady(prompt_tokens=100, shared_tokens=20, **about)
        if isinstance(command, c.StepEnvironment):
            done = command.turn + 1 >= TURNS
            kept = 50 if command.turn == 1 else None
            return draw(4.0), e.EnvironmentStepped(observation_tokens=10, kept_tokens=kept, done=done, **about)
        if isinstance(command, c.GenerateTurn):
            took_s = 0.2 + draw(1.0)
            self.busy_s["engine"] += took_s / 4
            return took_s, self.turn(command, took_s)
        if isinstance(command, c.ScoreTrajectory):
            return draw(5.0), e.TrajectoryScored(reward=float(command.trajectory % 3 == 0), **about)
        if isinstance(command, c.TrainBatch):
            self.busy_s["trainer"] += 2.0
            return 2.0, e.TrainingEnded(version=command.version, **about)
        if isinstance(command, c.RestartEngine):
            return 3.0, e.EngineStarted(**about)
        if isinstance(command, c.UpdateEngine):
            return 0.7, e.EngineUpdated(version=command.version, **about)
        if isinstance(command, c.PushWeights):
            return 1.0, e.WeightsPushed(version=command.version, **about)
        plain = {
            c.CloseEnvironment: (0.1, e.EnvironmentClosed),
            c.SuspendEngine: (0.05, e.EngineSuspended),
            c.ResumeEngine: (0.01, e.EngineResumed),
        }
        if isinstance(command, c.AbortGeneration):
            return 0.02, e.GenerationAborted(output_tokens=3, **about)
        if isinstance(command, c.SetTimer):
            return command.delay_s, e.TimerFired(**about)
        delay_s, kind = plain[type(command)]
        return delay_s, kind(**about)

    def turn(self, command: c.GenerateTurn, took_s: float) -> e.TurnGenerated:
        return e.TurnGenerated(
            command_id=command.id,
            output_tokens=self.random.randrange(10, 90),
            cached_tokens=0,
            recomputed_tokens=0,
            preemptions=0,
            truncated=False,
            queue_s=0.0,
            prefill_s=took_s / 4,
            decode_s=took_s * 3 / 4,
        )

    def lose(self) -> e.Event | None:
        """Engine 1 dies."""
        cut = tuple(
            number for number, order in self.orders.items() if isinstance(order, c.GenerateTurn) and order.engine == 1
        )
        for number, order in list(self.orders.items()):
            if isinstance(order, c.EngineCommand) and order.engine == 1:
                del self.orders[number]
                self.to_resume -= 1
        return e.EngineLost(engine=1, incarnation=self.incarnations[1], commands=cut, saved_tokens=(5,) * len(cut))

    def sample(self) -> None:
        for engine in range(ENGINES):
            self.writer.sample(
                self.now,
                EngineSample(
                    engine=engine,
                    busy_s=min(self.busy_s["engine"], self.now),
                    iterations=self.step,
                    prefill_tokens=1000 * self.step,
                    decode_tokens=500 * self.step,
                    cached_tokens=0,
                    recomputed_tokens=100 * self.step,
                    recompute_preempted_tokens=40 * self.step,
                    preemptions=0,
                    kv_block_s=50 * self.now,
                    kv_capacity_blocks=200,
                    running=0,
                    waiting=0,
                ),
            )
        self.writer.sample(self.now, TrainerSample(busy_s=self.busy_s["trainer"]))
        self.writer.sample(self.now, LinkSample(link="rollout-train", bytes=7, busy_s=0.0))
        self.writer.sample(self.now, EnvironmentSample(busy_s=self.now, slots_s=self.now))
        self.writer.sample(self.now, RewardSample(busy_s=0.0, billed_s=2.0 * self.step, cold_starts=0))
