"""Follows the attempts at trajectories through the records of a run log, and makes episodes of them.

An answer counts while its command is the trajectory's open one; later ones are void, as for the controller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from rollart.domain.commands import (
    AbortGeneration,
    CloseEnvironment,
    Command,
    EndTrajectory,
    GenerateTurn,
    ResetEnvironment,
    ScoreTrajectory,
    StepEnvironment,
)
from rollart.domain.events import (
    Answer,
    EngineLost,
    EnvironmentFailed,
    EnvironmentReady,
    EnvironmentStepped,
    GenerationAborted,
    TrajectoryScored,
    TurnGenerated,
)
from rollart.domain.trajectory import Cause
from rollart.workload.importers.episode import Episode
from rollart.workload.trace import CallOutcome, Provenance, TraceTurn

_OUTCOMES: dict[Cause, CallOutcome] = {Cause.ERROR: "failed", Cause.TIMEOUT: "timeout"}
_NO_TURN = "without a turn"
_NO_REWARD = "that were never scored"


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """What is known of one attempt so far."""

    reset: ResetEnvironment
    command: int
    """Id of the order whose answer is awaited; -1 where none is."""
    asked_s: float
    prompt_tokens: int = 0
    shared_tokens: int = 0
    reset_s: float | None = None
    reset_outcome: CallOutcome = "ok"
    made_tokens: int = 0
    """Of the turn that is being generated."""
    held_tokens: int = 0
    """The context of the last generation, with its output."""
    turns: list[TraceTurn] = field(default_factory=list)
    observation: EnvironmentStepped | None = None
    done: bool = False
    """The environment said that the episode was over."""
    finished: bool = False
    """It went as far as it could: to its end, or to a limit."""
    reward_s: float | None = None
    reward: float | None = None

    def await_answer(self, command: Command, time_s: float) -> None:
        self.command, self.asked_s = command.id, time_s

    def add_turn(self, output_tokens: int) -> None:
        """A generation, on what the step before it left."""
        kept, new = None, self.prompt_tokens - self.shared_tokens
        if self.observation is not None:
            kept, new = self.observation.kept_tokens, self.observation.observation_tokens
        if kept is not None and kept >= self.held_tokens:
            kept = None
        self.held_tokens = (self.held_tokens if kept is None else kept) + new + output_tokens
        self.turns.append(TraceTurn(prompt_tokens=new, kept_tokens=kept, output_tokens=output_tokens))

    def add_step(self, env_s: float, outcome: CallOutcome = "ok") -> None:
        """The step after the last generation."""
        self.turns[-1] = msgspec.structs.replace(self.turns[-1], env_s=env_s, outcome=outcome)


class Attempts:
    """All attempts that are under way, and what was left out so far."""

    def __init__(self, *, run: str, simulated: bool) -> None:
        """`run` is put before the names of groups; `simulated`: nothing was measured."""
        self._run = run
        self._simulated = simulated
        self._open: dict[int, _Attempt] = {}
        self._owner: dict[int, int] = {}
        """Of commands that await an answer: their trajectory."""
        self.left_out: Counter[str] = Counter()
        """Why, and how many attempts."""

    def take(self, time_s: float, record: msgspec.Struct) -> Iterator[Episode]:
        """Take the next record; episodes that are complete with it."""
        if isinstance(record, ResetEnvironment):
            attempt = _Attempt(reset=record, command=record.id, asked_s=time_s)
            self._open[record.trajectory] = attempt
            self._owner[record.id] = record.trajectory
        elif isinstance(record, EndTrajectory):
            yield from self._end(record.trajectory, str(record.end))
        elif isinstance(record, Command):
            self._order(time_s, record)
        elif isinstance(record, EngineLost):
            for command, made in zip(record.commands, record.saved_tokens, strict=True):
                self._keep(self._awaiting(command), made)
        elif isinstance(record, Answer):
            attempt_or_none = self._awaiting(record.command_id)
            if attempt_or_none is not None:
                yield from self._answer(time_s, record, attempt_or_none)

    def rest(self) -> Iterator[Episode]:
        """Episodes of a log that ends without having ended them."""
        for trajectory in list(self._open):
            yield from self._end(trajectory, "unfinished")

    def _order(self, time_s: float, command: Command) -> None:
        trajectory = getattr(command, "trajectory", -1)
        attempt = self._open.get(trajectory)
        if attempt is None:
            return
        if isinstance(command, CloseEnvironment):
            self._forget(attempt)
        elif isinstance(command, GenerateTurn | StepEnvironment | ScoreTrajectory | AbortGeneration):
            self._forget(attempt)
            attempt.await_answer(command, time_s)
            self._owner[command.id] = trajectory
            if isinstance(command, GenerateTurn):
                attempt.made_tokens = command.partial_tokens
            elif isinstance(command, ScoreTrajectory):
                attempt.finished = True

    def _answer(self, time_s: float, answer: Answer, attempt: _Attempt) -> Iterable[Episode]:
        self._forget(attempt)
        took_s = time_s - attempt.asked_s
        if isinstance(answer, EnvironmentReady):
            attempt.prompt_tokens, attempt.shared_tokens = answer.prompt_tokens, answer.shared_tokens
            attempt.held_tokens = answer.shared_tokens
            attempt.reset_s = took_s
        elif isinstance(answer, TurnGenerated):
            attempt.add_turn(attempt.made_tokens + answer.output_tokens)
            attempt.made_tokens = 0
            attempt.finished = answer.truncated
        elif isinstance(answer, GenerationAborted):
            self._keep(attempt, answer.output_tokens)
        elif isinstance(answer, EnvironmentStepped):
            attempt.add_step(took_s)
            attempt.observation = answer
            attempt.done = attempt.finished = answer.done
        elif isinstance(answer, EnvironmentFailed):
            return self._failed(attempt, took_s, _OUTCOMES[answer.cause])
        elif isinstance(answer, TrajectoryScored):
            attempt.reward_s, attempt.reward = took_s, answer.reward
        return ()

    def _keep(self, attempt: _Attempt | None, made_tokens: int) -> None:
        if attempt is not None:
            attempt.made_tokens += made_tokens

    def _failed(self, attempt: _Attempt, took_s: float, outcome: CallOutcome) -> Iterator[Episode]:
        del self._open[attempt.reset.trajectory]
        if attempt.turns:
            attempt.add_step(took_s, outcome)
        else:
            attempt.reset_s, attempt.reset_outcome = took_s, outcome
        yield self._episode(attempt, failed=True)

    def _end(self, trajectory: int, end: str) -> Iterator[Episode]:
        attempt = self._open.pop(trajectory, None)
        if attempt is None:
            return
        self._forget(attempt)
        if not attempt.finished:
            self.left_out[f"cut short as {end}"] += 1
            return
        if attempt.made_tokens:
            attempt.add_turn(attempt.made_tokens)
        if not attempt.turns:
            self.left_out[_NO_TURN] += 1
        elif attempt.reward is None:
            self.left_out[_NO_REWARD] += 1
        else:
            if attempt.turns[-1].env_s is None:
                # Cut by the limit: no step followed, which is known, and takes no time.
                attempt.add_step(0.0)
            yield self._episode(attempt, failed=False)

    def _episode(self, attempt: _Attempt, *, failed: bool) -> Episode:
        reset = attempt.reset
        drawn: Provenance | None = "drawn" if self._simulated else None
        return Episode(
            task=reset.task,
            group=f"{self._run}prompt {reset.prompt}, group {reset.group}",
            identity=f"{self._run}trajectory {reset.trajectory}, attempt {reset.attempt}",
            prompt_tokens=attempt.shared_tokens,
            turns=tuple(attempt.turns),
            reset_s=attempt.reset_s,
            reset_outcome=attempt.reset_outcome,
            reward_s=attempt.reward_s,
            reward=attempt.reward,
            outcome="failed" if failed else "ok" if attempt.done else "truncated",
            tokens=drawn or "counted",
            turns_known=drawn or "counted",
            kept=drawn or "counted",
            env=drawn or "measured",
            phases=drawn or "measured",
        )

    def _awaiting(self, command_id: int) -> _Attempt | None:
        attempt = self._open.get(self._owner.get(command_id, -1))
        return attempt if attempt is not None and attempt.command == command_id else None

    def _forget(self, attempt: _Attempt) -> None:
        self._owner.pop(attempt.command, None)
        attempt.command = -1
