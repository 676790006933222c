"""The token store: what each trajectory has seen and said, beside the counts that the controller knows.

Tokens are appended and never changed or tokenised again, so that what is trained on is what was generated.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

from rollart.domain.commands import EndTrajectory, ResetEnvironment
from rollart.domain.trajectory import End


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Tokens that an engine made, with the log-prob of each under the policy that sampled it, and its version."""

    tokens: list[int]
    logprobs: list[float]
    versions: list[int]


@dataclass(slots=True, kw_only=True)
class Episode:
    """One attempt at a trajectory."""

    task: str
    group: int
    start_version: int
    tokens: list[int] = field(default_factory=list)
    made: list[bool] = field(default_factory=list)
    """Whether the agent generated the token; the others come from the environment."""
    logprobs: list[float] = field(default_factory=list)
    """0.0 for tokens of the environment."""
    versions: list[int] = field(default_factory=list)
    """-1 for tokens of the environment."""
    turn_begin: int = 0
    """Index of the first token of the present turn."""
    reward: float = 0.0
    """Earned so far, by the environment's own account."""
    score: float | None = None
    """The reward as it was reported."""

    def observe(self, ids: list[int]) -> None:
        """The environment said something: the next turn begins after it."""
        self.tokens += ids
        self.made += [False] * len(ids)
        self.logprobs += [0.0] * len(ids)
        self.versions += [-1] * len(ids)
        self.turn_begin = len(self.tokens)

    def generated(self, part: Generated) -> None:
        """The agent said something, the whole turn or a part of it."""
        self.tokens += part.tokens
        self.made += [True] * len(part.tokens)
        self.logprobs += part.logprobs
        self.versions += part.versions

    @property
    def turn(self) -> list[int]:
        """Tokens of the present turn so far."""
        return self.tokens[self.turn_begin :]


class Episodes:
    """All trajectories that are under way or wait for the trainer."""

    def __init__(self, forgotten: Callable[[int], None] | None = None) -> None:
        """`forgotten(trajectory)` is called when an episode is dropped."""
        self._forgotten = forgotten
        self._episodes: dict[int, Episode] = {}
        self._prompts: dict[int, tuple[list[int], int]] = {}
        """Group -> first prompt of it that was seen, and members that are here."""

    def __getitem__(self, trajectory: int) -> Episode:
        return self._episodes[trajectory]

    def get(self, trajectory: int) -> Episode | None:
        """The trajectory's present attempt, unless it has ended."""
        return self._episodes.get(trajectory)

    def begin(self, command: ResetEnvironment) -> None:
        """A new attempt: nothing of an earlier one is kept."""
        self.forget(command.trajectory)
        self.adopt(command.trajectory, Episode(task=command.task, group=command.group, start_version=command.version))

    def adopt(self, trajectory: int, episode: Episode) -> None:
        """Take in an episode as it is."""
        self._episodes[trajectory] = episode
        prompt, members = self._prompts.get(episode.group, ([], 0))
        self._prompts[episode.group] = (prompt, members + 1)

    def ready(self, trajectory: int, ids: list[int]) -> int:
        """The first prompt is there; leading tokens of it that the group shares."""
        episode = self._episodes[trajectory]
        episode.observe(ids)
        prompt, members = self._prompts[episode.group]
        if not prompt:
            self._prompts[episode.group] = (ids, members)
            return len(ids)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, ids, strict=False)))

    def end(self, command: EndTrajectory) -> None:
        """Keep what will be trained on, forget the rest."""
        if command.end is not End.TRAINED:
            self.forget(command.trajectory)

    def batch(self, trajectories: tuple[int, ...]) -> list[Episode]:
        """Episodes of a batch; they stay until a checkpoint has what was learnt from them."""
        return [self._episodes[trajectory] for trajectory in trajectories]

    def forget(self, trajectory: int) -> None:
        """Drop an episode, if it is there."""
        episode = self._episodes.pop(trajectory, None)
        if episode is None:
            return
        if self._forgotten is not None:
            self._forgotten(trajectory)
        prompt, members = self._prompts[episode.group]
        if members == 1:
            del self._prompts[episode.group]
        else:
            self._prompts[episode.group] = (prompt, members - 1)
