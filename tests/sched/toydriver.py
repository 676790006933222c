"""A second driver of the controller: a logical clock, durations by luck, no model of anything.

Times are whole numbers, so that many answers fall on one instant; luck orders them. It is strict: an order that no
real worker could carry out (an update to a version that nobody has pushed, a turn on an engine whose memory the
trainer uses) is an AssertionError.
"""

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause, End
from rollart.runlog.schema import Record
from rollart.sched import Controller, ControllerConfig
from tests.sched.toyengines import ToyEngine, ToyTrainer

Watch = Callable[[Controller, e.Event, list[c.Command]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """What may happen, with which probability."""

    seed: int = 0
    environment_fails: float = 0.0
    reward_fails: float = 0.0
    late_answer: float = 0.0
    """That an answer to a void command is reported all the same."""
    losses: tuple[tuple[int, int], ...] = ()
    """Times and engines: the engine dies then, if it is up or starting."""
    trainer_losses: tuple[int, ...] = ()
    """Times at which the trainer dies, if it is up."""
    crashes: tuple[int, ...] = ()
    """Times at which everything dies, the driver too, and the run is resumed from a snapshot."""
    notice: int = 0
    """Longest time between a death and its report."""
    longest: int = 4
    """Of all durations."""
    rewards: tuple[float, ...] = (0.0, 1.0)

    def at(self, *key: object) -> random.Random:
        """A generator for what `key` names, whatever was drawn before."""
        return random.Random(f"{self.seed}:{key}")


@dataclass
class ToyDriver:
    """Carries out the commands of one run."""

    config: ControllerConfig
    luck: Luck = field(default_factory=Luck)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        self.controller = Controller(self.config)
        self.records: list[tuple[int, float, Record]] = []
        self.engines = [ToyEngine() for _ in self.config.engine_classes]
        self.trainer = ToyTrainer()
        self.ends: dict[int, End] = {}
        self.now = 0
        self.stopped = False
        self._heap: list[tuple[int, float, int, Callable[[], e.Event | None]]] = []
        self._count = 0
        self._open: dict[int, c.Command] = {}
        self._pushed = {0}
        self._epoch = 0
        self._order: dict[int, int] = {}

    # The loop

    def run(self, max_events: int = 5_000) -> "ToyDriver":
        """To StopRun; AssertionError when nothing is left to happen, or too much has."""
        self._later(0, lambda: e.RunStarted())
        for time, engine in self.luck.losses:
            self._later(time, lambda engine=engine: self._lose(engine), of_nature=True)
        for time in self.luck.trainer_losses:
            self._later(time, self._lose_trainer, of_nature=True)
        for time in self.luck.crashes:
            self._later(time, self._crash, of_nature=True)
        handled = 0
        while not self.stopped:
            assert self._heap, f"deadlock at {self.now}: {len(self.controller.state.trajectories)} trajectories wait"
            self.now, _, _, happen = heapq.heappop(self._heap)
            event = happen()
            if event is not None:
                self._handle(event)
                handled += 1
                assert handled <= max_events, f"no StopRun after {handled} events"
        return self

    def _handle(self, event: e.Event) -> None:
        if isinstance(event, e.Answer):
            self._open.pop(event.command_id, None)
        commands = self.controller.handle(event, float(self.now))
        for record in (event, *commands):
            self.records.append((len(self.records), float(self.now), record))
        for command in commands:
            if type(command) not in c.UNANSWERED:
                self._open[command.id] = command
            getattr(self, f"_{type(command).__name__}")(command)
        if self.watch is not None:
            self.watch(self.controller, event, commands)

    def _later(self, delay: int, happen: Callable[[], e.Event | None], *, of_nature: bool = False) -> None:
        """Let something happen, unless it is a worker's doing and all workers are gone by then."""
        epoch, self._count = self._epoch, self._count + 1
        tie = self.luck.at("tie", self._count).random()
        alive = happen if of_nature else lambda: happen() if epoch == self._epoch else None
        heapq.heappush(self._heap, (self.now + delay, tie, self._count, alive))

    def _answer(self, command: c.Command, event: e.Event) -> None:
        """Report the event after a while, unless the command is void by then (or late answers are in luck)."""
        luck = self.luck.at("duration", command.id)
        delay, late = luck.randint(0, self.luck.longest), luck.random() < self.luck.late_answer
        self._later(delay, lambda: event if late or command.id in self._open else None)

    # Environments and rewards

    def _ResetEnvironment(self, command: c.ResetEnvironment) -> None:
        luck = self.luck.at("reset", command.trajectory, command.attempt)
        self._order[command.trajectory] = command.id
        if luck.random() < self.luck.environment_fails:
            self._answer(command, e.EnvironmentFailed(command_id=command.id, cause=Cause.TIMEOUT))
        else:
            prompt = 10 + self.luck.at("prompt", command.task, command.prompt).randint(0, 40)
            self._answer(command, e.EnvironmentReady(command_id=command.id, prompt_tokens=prompt, shared_tokens=10))

    def _StepEnvironment(self, command: c.StepEnvironment) -> None:
        luck = self.luck.at("step", command.trajectory, command.id)
        self._order[command.trajectory] = command.id
        if luck.random() < self.luck.environment_fails:
            self._answer(command, e.EnvironmentFailed(command_id=command.id, cause=Cause.ERROR))
            return
        stepped = e.EnvironmentStepped(
            command_id=command.id,
            observation_tokens=luck.randint(0, 60),
            kept_tokens=luck.choice((None, None, 20)),
            done=luck.random() < 0.3,
        )
        self._answer(command, stepped)

    def _CloseEnvironment(self, command: c.CloseEnvironment) -> None:
        self._open.pop(self._order.pop(command.trajectory), None)
        self._answer(command, e.EnvironmentClosed(command_id=command.id))

    def _ScoreTrajectory(self, command: c.ScoreTrajectory) -> None:
        luck = self.luck.at("score", command.trajectory, command.attempt)
        if luck.random() < self.luck.reward_fails:
            garbage = e.TrajectoryScored(command_id=command.id, reward=math.nan)
            failed = e.RewardFailed(command_id=command.id, cause=Cause.ERROR)
            self._answer(command, luck.choice((garbage, failed)))
        else:
            self._answer(command, e.TrajectoryScored(command_id=command.id, reward=luck.choice(self.luck.rewards)))

    def _EndTrajectory(self, command: c.EndTrajectory) -> None:
        assert command.trajectory not in self.ends, f"{command} ends it again"
        self.ends[command.trajectory] = command.end

    # Generation

    def _GenerateTurn(self, command: c.GenerateTurn) -> None:
        assert command.max_tokens >= 1, command
        for index in (command.engine, command.prefill_engine):
            if index is None:
                continue
            engine = self.engines[index]
            incarnation = command.incarnation if index == command.engine else engine.incarnation
            if not engine.reaches(incarnation):
                self._report_loss(index, incarnation, (command.id,), (0,))
                return
        self.engines[command.engine].turns[command.id] = command
        self._later(self.luck.at("turn", command.id).randint(0, self.luck.longest), lambda: self._made(command))

    def _made(self, command: c.GenerateTurn) -> e.Event | None:
        engine = self.engines[command.engine]
        if engine.suspended and command.id in engine.turns:
            engine.ready.append(command.id)
            return None
        luck = self.luck.at("made", command.id)
        if engine.turns.pop(command.id, None) is None and luck.random() >= self.luck.late_answer:
            return None
        tokens = luck.randint(1, 120)
        return e.TurnGenerated(
            command_id=command.id,
            output_tokens=min(tokens, command.max_tokens),
            cached_tokens=0,
            recomputed_tokens=0,
            preemptions=0,
            truncated=tokens > command.max_tokens,
            queue_s=0.0,
            prefill_s=0.0,
            decode_s=1.0,
        )

    def _AbortGeneration(self, command: c.AbortGeneration) -> None:
        engine = self.engines[command.engine]
        target = engine.turns.pop(command.target, None)
        made = self.luck.at("aborted", command.id).randint(0, min(60, target.max_tokens)) if target else 0
        if engine.reaches(command.incarnation):
            self._answer_alive(command, e.GenerationAborted(command_id=command.id, output_tokens=made))

    def _lose(self, index: int) -> e.Event | None:
        engine = self.engines[index]
        if engine.up:
            lost = engine.die()
            for number, other in enumerate(self.engines):
                by_prefill = [i for i, turn in other.turns.items() if turn.prefill_engine == index]
                lost |= {i: other.turns.pop(i) for i in by_prefill if number != index}
            saved = [self.luck.at("saved", i).randint(0, min(60, turn.max_tokens)) for i, turn in lost.items()]
            self._report_loss(index, engine.incarnation, tuple(lost), tuple(saved))
        return None

    def _report_loss(self, index: int, incarnation: int, commands: tuple[int, ...], saved: tuple[int, ...]) -> None:
        """The dead answer no more, but for what was on its way already."""
        for number, command in list(self._open.items()):
            if getattr(command, "engine", None) == index and getattr(command, "incarnation", None) == incarnation:
                del self._open[number]
        event = e.EngineLost(engine=index, incarnation=incarnation, commands=commands, saved_tokens=saved)
        self._later(self.luck.at("notice", self._count).randint(0, self.luck.notice), lambda: event)

    # Training, weights and engines

    def _TrainBatch(self, command: c.TrainBatch) -> None:
        self.trainer.begin(command)
        incarnation = self.trainer.incarnation
        assert all(self.engines[i].released for i in self._time_shared() if self.engines[i].up), command
        self._later(self.luck.at("train", command.step).randint(1, 8), lambda: self._trained(command, incarnation))

    def _trained(self, command: c.TrainBatch, incarnation: int) -> e.Event | None:
        if not self.trainer.up or self.trainer.incarnation != incarnation:
            return None
        self.trainer.end(command)
        return e.TrainingEnded(command_id=command.id, version=command.version)

    def _lose_trainer(self) -> e.Event | None:
        if self.trainer.up:
            self.trainer.die()
            event = e.TrainerLost(incarnation=self.trainer.incarnation)
            self._later(self.luck.at("trainer", self._count).randint(0, self.luck.notice), lambda: event)
        return None

    def _RestartTrainer(self, command: c.RestartTrainer) -> None:
        self._later(self.luck.at("restart", command.id).randint(0, 4), lambda: self._trainer_back(command))

    def _trainer_back(self, command: c.RestartTrainer) -> e.Event:
        self.trainer.come_back(command)
        return e.TrainerStarted(command_id=command.id)

    def _crash(self) -> e.Event:
        """All workers die, and the controller goes on from its snapshot."""
        self._epoch += 1
        self._open.clear()
        self._order.clear()
        self._pushed = {0}
        self.trainer.die()
        for engine in self.engines:
            engine.die()
        self.controller = Controller.restore(self.config, self.controller.snapshot())
        return e.RunResumed()

    def _time_shared(self) -> list[int]:
        return [i for i, group in enumerate(self.config.engine_classes) if self.config.classes[group].time_shared]

    def _PushWeights(self, command: c.PushWeights) -> None:
        incarnation = self.trainer.incarnation
        if self.trainer.up:
            assert command.version <= self.trainer.version, f"{command} of the future"
        self._later(self.luck.at("push", command.id).randint(1, 4), lambda: self._push_done(command, incarnation))

    def _push_done(self, command: c.PushWeights, incarnation: int) -> e.Event | None:
        if not self.trainer.up or self.trainer.incarnation != incarnation:
            return None
        self._pushed.add(command.version)
        return e.WeightsPushed(command_id=command.id, version=command.version)

    def _answer_alive(self, command: Any, event: e.Event, effect: Callable[[ToyEngine], None] | None = None) -> None:
        """Answer for an engine that is up, with an effect on it if it still is when the answer is due."""
        engine = self.engines[command.engine]
        if not engine.reaches(command.incarnation):
            self._open.pop(command.id, None)
            return
        luck = self.luck.at("engine", command.id)
        delay, late = luck.randint(0, self.luck.longest), luck.random() < self.luck.late_answer

        def happen() -> e.Event | None:
            if not engine.reaches(command.incarnation):
                return event if late else None
            if effect is not None:
                effect(engine)
            return event

        self._later(delay, happen)

    def _PullWeights(self, command: c.PullWeights) -> None:
        answer = e.WeightsPulled(command_id=command.id, version=command.version)
        self._answer_alive(command, answer, lambda engine: engine.on_host.add(command.version))

    def _SuspendEngine(self, command: c.SuspendEngine) -> None:
        engine = self.engines[command.engine]
        if engine.reaches(command.incarnation):
            assert not engine.suspended or command.release_memory > engine.released, f"{command} changes nothing"
            engine.suspended, engine.released = True, command.release_memory
        self._answer_alive(command, e.EngineSuspended(command_id=command.id))

    def _UpdateEngine(self, command: c.UpdateEngine) -> None:
        engine = self.engines[command.engine]
        assert command.version in self._pushed or command.version == 0, command
        if engine.reaches(command.incarnation):
            assert command.source is not c.WeightSource.HOST or command.version in engine.on_host, command
            assert command.version >= engine.version, command
            assert not (self.trainer.working and command.engine in self._time_shared()), (
                f"{command} on the trainer's memory"
            )
            engine.version, engine.released = command.version, False
        self._answer_alive(command, e.EngineUpdated(command_id=command.id, version=command.version))

    def _ResumeEngine(self, command: c.ResumeEngine) -> None:
        engine = self.engines[command.engine]
        if engine.reaches(command.incarnation):
            assert engine.suspended, f"{command} of a running engine"
            engine.suspended = False
            ready, engine.ready = engine.ready, []
            for turn in ready:
                if turn in engine.turns:
                    self._later(0, lambda turn=engine.turns[turn]: self._made(turn))
        self._answer_alive(command, e.EngineResumed(command_id=command.id))

    def _RestartEngine(self, command: c.RestartEngine) -> None:
        self.engines[command.engine].come_back(command.incarnation)
        self._answer_alive(command, e.EngineStarted(command_id=command.id))

    # Time, and the end

    def _SetTimer(self, command: c.SetTimer) -> None:
        self._later(int(command.delay_s), lambda: self._fired(command))

    def _fired(self, command: c.SetTimer) -> e.Event | None:
        late = self.luck.at("fired", command.id).random() < self.luck.late_answer
        return e.TimerFired(command_id=command.id) if late or command.id in self._open else None

    def _CancelTimer(self, command: c.CancelTimer) -> None:
        self._open.pop(command.target, None)

    def _StopRun(self, _: c.StopRun) -> None:
        self.stopped = True
        self._open.clear()
