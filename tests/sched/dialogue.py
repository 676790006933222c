"""A conversation with a controller, written down by hand: say what happened, see what it orders."""

from typing import Any, TypeVar

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause
from rollart.sched import Controller, ControllerConfig
from rollart.sched.state import Phase, SyncPhase, Trajectory

Order = TypeVar("Order", bound=c.Command)


class Dialogue:
    """One controller; every method reports one event and returns the commands that follow."""

    def __init__(self, config: ControllerConfig) -> None:
        self.controller = Controller(config)
        self.orders: list[c.Command] = []
        self.start = self.tell(e.RunStarted())

    def tell(self, event: e.Event) -> list[c.Command]:
        """Report any event."""
        commands = self.controller.handle(event, 0.0)
        self.orders += commands
        return commands

    # Looking

    def last(self, kind: type[Order], **fields: object) -> Order:
        """The latest order of a kind with these fields."""
        for order in reversed(self.orders):
            if isinstance(order, kind) and all(getattr(order, name) == value for name, value in fields.items()):
                return order
        raise AssertionError(f"no {kind.__name__} with {fields}")

    def all(self, kind: type[Order]) -> list[Order]:
        """All orders of a kind."""
        return [order for order in self.orders if isinstance(order, kind)]

    def trajectory(self, number: int) -> Trajectory:
        """Its state."""
        return self.controller.state.trajectories[number]

    def phase(self, number: int) -> Phase:
        """Where it is in its life."""
        return self.trajectory(number).phase

    @property
    def sync(self) -> SyncPhase:
        """Where the weight update is."""
        return self.controller.state.sync.phase

    # The life of a trajectory

    def ready(self, number: int, prompt: int = 100, shared: int = 50) -> list[c.Command]:
        """The latest reset succeeded."""
        order = self.last(c.ResetEnvironment, trajectory=number).id
        return self.tell(e.EnvironmentReady(command_id=order, prompt_tokens=prompt, shared_tokens=shared))

    def generated(self, number: int, tokens: int = 10, *, truncated: bool = False) -> list[c.Command]:
        """The latest turn is complete."""
        return self.tell(turn_generated(self.last(c.GenerateTurn, trajectory=number).id, tokens, truncated=truncated))

    def stepped(self, number: int, tokens: int = 5, *, kept: int | None = None, done: bool = False) -> list[c.Command]:
        """The latest action was carried out."""
        order = self.last(c.StepEnvironment, trajectory=number).id
        return self.tell(e.EnvironmentStepped(command_id=order, observation_tokens=tokens, kept_tokens=kept, done=done))

    def failed(self, number: int) -> list[c.Command]:
        """What its environment does now fails."""
        command_id = self.trajectory(number).command
        return self.tell(e.EnvironmentFailed(command_id=command_id, cause=Cause.ERROR))

    def closed(self, number: int) -> list[c.Command]:
        """Its environment is gone."""
        return self.tell(e.EnvironmentClosed(command_id=self.last(c.CloseEnvironment, trajectory=number).id))

    def scored(self, number: int, reward: float = 1.0) -> list[c.Command]:
        """The reward is known."""
        order = self.last(c.ScoreTrajectory, trajectory=number).id
        return self.tell(e.TrajectoryScored(command_id=order, reward=reward))

    def fired(self, number: int) -> list[c.Command]:
        """The timer that the trajectory waits for is over."""
        return self.tell(e.TimerFired(command_id=self.trajectory(number).command))

    def finish(self, *numbers: int, reward: float = 1.0) -> list[c.Command]:
        """One turn for each, and a score; what the last score leads to."""
        commands: list[c.Command] = []
        for number in numbers:
            self.ready(number)
            self.generated(number)
            self.stepped(number, done=True)
            commands = self.scored(number, reward)
        return commands

    # Training, weights, engines

    def trained(self) -> list[c.Command]:
        """The training step is done."""
        order = self.all(c.TrainBatch)[-1]
        return self.tell(e.TrainingEnded(command_id=order.id, version=order.version))

    def pushed(self) -> list[c.Command]:
        """The latest push is complete."""
        order = self.all(c.PushWeights)[-1]
        return self.tell(e.WeightsPushed(command_id=order.id, version=order.version))

    def answer(self, kind: type[c.EngineCommand], engine: int) -> list[c.Command]:
        """The engine has done the latest order of a kind."""
        order = self.last(kind, engine=engine)
        event, version = _ENGINE_ANSWERS[kind]
        fields: dict[str, Any] = {"version": getattr(order, "version", None)} if version else {}
        return self.tell(event(command_id=order.id, **fields))

    def lost(self, engine: int, incarnation: int = 0, saved: dict[int, int] | None = None) -> list[c.Command]:
        """The engine died; `saved`: its open turns, and the tokens of each."""
        saved = saved or {}
        return self.tell(
            e.EngineLost(
                engine=engine,
                incarnation=incarnation,
                commands=tuple(saved),
                saved_tokens=tuple(saved.values()),
            )
        )


_ENGINE_ANSWERS: dict[type[c.EngineCommand], tuple[type[e.Answer], bool]] = {
    c.PullWeights: (e.WeightsPulled, True),
    c.SuspendEngine: (e.EngineSuspended, False),
    c.UpdateEngine: (e.EngineUpdated, True),
    c.ResumeEngine: (e.EngineResumed, False),
    c.RestartEngine: (e.EngineStarted, False),
}


def turn_generated(command_id: int, tokens: int = 10, *, truncated: bool = False) -> e.TurnGenerated:
    """A turn's answer of which only the tokens matter here."""
    return e.TurnGenerated(
        command_id=command_id,
        output_tokens=tokens,
        cached_tokens=0,
        recomputed_tokens=0,
        preemptions=0,
        truncated=truncated,
        queue_s=0.0,
        prefill_s=0.0,
        decode_s=0.0,
    )


def briefly(commands: list[c.Command]) -> list[str]:
    """Commands by name, with whom they concern."""
    shown = []
    for command in commands:
        subject = getattr(command, "trajectory", getattr(command, "engine", None))
        name = type(command).__name__
        shown.append(name if subject is None else f"{name} {subject}")
    return shown
