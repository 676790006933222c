"""What is observed of one task, in columns: 24 bytes a value, so memory grows with the turns of the trace."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollart.workload.trace import TraceTrajectory

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Values of one figure, each with the number of its trajectory and its turn (0 for one draw a trajectory)."""

    values: Floats
    trajectory: Indices
    turn: Indices

    def __len__(self) -> int:
        return len(self.values)

    def of(self, chosen: Flags) -> "Draws":
        """Those where `chosen` is true."""
        return Draws(values=self.values[chosen], trajectory=self.trajectory[chosen], turn=self.turn[chosen])


class _Column:
    """Grows one draw at a time."""

    def __init__(self) -> None:
        self._values, self._trajectory, self._turn = array("d"), array("q"), array("q")

    def add(self, value: float, trajectory: int, turn: int = 0) -> None:
        self._values.append(value)
        self._trajectory.append(trajectory)
        self._turn.append(turn)

    def draws(self) -> Draws:
        return Draws(
            values=np.array(self._values, dtype=np.float64),
            trajectory=np.array(self._trajectory, dtype=np.int64),
            turn=np.array(self._turn, dtype=np.int64),
        )


class Observed:
    """Columns of one task. Turns of failed trajectories count for lengths and times, not for the number of turns."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.trajectories = 0
        self.calls: dict[tuple[str, str], int] = {}
        """("reset" | "step", outcome): how many."""
        self.waits: dict[str, list[float]] = {"reset": [], "step": []}
        """Seconds of the calls that timed out."""
        self.rewards: list[tuple[int, float]] = []
        """(group, reward) of every scored trajectory."""
        self.compactions: list[tuple[int, int]] = []
        """(context before it, tokens behind the prompt after it) of every turn that lost more than one output."""
        self.provenance: dict[str, set[str]] = {}
        self._group_numbers: dict[str, int] = {}
        self._groups = array("q")
        self._lengths = array("q")
        self._columns: dict[str, _Column] = {}

    def add(self, trajectory: TraceTrajectory) -> None:
        """Take one trajectory in."""
        number, turns = self.trajectories, trajectory.turns
        self.trajectories += 1
        self._lengths.append(len(turns))
        self._groups.append(self._group_numbers.setdefault(trajectory.group, len(self._group_numbers)))
        for field, how in trajectory.provenance.items():
            self.provenance.setdefault(field, set()).add(how)
        self._count_calls(trajectory)
        if trajectory.reset_s is not None and trajectory.reset_outcome != "timeout":
            self._column("reset_s").add(trajectory.reset_s, number)
        if trajectory.reward_s is not None:
            self._column("reward_s").add(trajectory.reward_s, number)
        if trajectory.reward is not None:
            self.rewards.append((self._groups[-1], trajectory.reward))
        if not turns:
            return
        self._column("prompt_tokens").add(trajectory.prompt_tokens + turns[0].prompt_tokens, number)
        if trajectory.outcome != "failed":
            self._column("turns").add(len(turns), number)
        self._add_turns(trajectory, number)

    def _count_calls(self, trajectory: TraceTrajectory) -> None:
        calls = [("reset", trajectory.reset_outcome, trajectory.reset_s)]
        calls += [("step", turn.outcome, turn.env_s) for turn in trajectory.turns]
        for call, outcome, seconds in calls:
            self.calls[call, outcome] = self.calls.get((call, outcome), 0) + 1
            if outcome == "timeout" and seconds is not None:
                self.waits[call].append(seconds)

    def _add_turns(self, trajectory: TraceTrajectory, number: int) -> None:
        output, observation = self._column("output_tokens"), self._column("observation_tokens")
        env_s = self._column("env_s")
        held = trajectory.prompt_tokens
        for index, turn in enumerate(trajectory.turns):
            new = turn.prompt_tokens
            if turn.kept_tokens is not None:
                lost = held - turn.kept_tokens
                if index and lost > trajectory.turns[index - 1].output_tokens:
                    self.compactions.append((held, turn.kept_tokens + new - trajectory.prompt_tokens))
                    new = -1  # an unknown mix of summary and observation
                else:
                    new = max(0, new - lost)  # the growth of the context is kept, not what of it was cached
                held = turn.kept_tokens
            if index and new >= 0:
                observation.add(new, number, index)
            output.add(turn.output_tokens, number, index)
            if turn.env_s is not None and turn.outcome != "timeout":
                env_s.add(turn.env_s, number, index)
            held += turn.prompt_tokens + turn.output_tokens

    def _column(self, figure: str) -> _Column:
        column = self._columns.get(figure)
        if column is None:
            column = self._columns[figure] = _Column()
        return column

    def draws(self, figure: str) -> Draws:
        """All values of a figure; none where nothing was recorded."""
        return self._column(figure).draws()

    @property
    def groups(self) -> Indices:
        """Number of the group of each trajectory, from 0."""
        return np.array(self._groups, dtype=np.int64)

    @property
    def lengths(self) -> Indices:
        """Turns of each trajectory, as far as it went."""
        return np.array(self._lengths, dtype=np.int64)

    @property
    def group_count(self) -> int:
        """Groups seen."""
        return len(self._group_numbers)


def observe(trajectories: Iterable[TraceTrajectory]) -> dict[str, Observed]:
    """Columns of each task, in the order of first appearance."""
    found: dict[str, Observed] = {}
    for trajectory in trajectories:
        own = found.get(trajectory.task)
        if own is None:
            own = found[trajectory.task] = Observed(trajectory.task)
        own.add(trajectory)
    return found
