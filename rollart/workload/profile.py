"""A statistical workload: distributions and rates per task, as drivers need them.

`profile_file` reads them from YAML. Every figure of the file says where it comes from, or that it is a guess;
that text stays in the file and in `Figure.source`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollart.workload.by_turn import TurnFactors
from rollart.workload.quantiles import QuantileFunction

GUESS = "guess"
"""The source of a figure that nobody measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One distributed quantity of a task.

    `prompt_share` and `member_share` are shares of the variance of its latent normal that all draws of one
    prompt, or of one trajectory, have in common; the rest is fresh in every turn. They do not change the
    distribution itself.
    """

    law: QuantileFunction
    prompt_share: float
    member_share: float
    source: str
    turns_correlation: float = 0.0
    """Of the member's part with the trajectory's number of turns, both as latent normals; per-turn figures only."""
    by_turn: TurnFactors | None = None
    """What a draw of turn k is multiplied by; per-turn figures only."""
    from_turns: Mapping[int, QuantileFunction] = field(default_factory=dict)
    """Laws of trajectories with at least so many turns, in place of `law`; per-turn figures only."""

    def law_at(self, turns: int) -> QuantileFunction:
        """The law of a trajectory with this number of turns."""
        lowest = max((least for least in self.from_turns if least <= turns), default=None)
        return self.law if lowest is None else self.from_turns[lowest]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRates:
    """Shares of environment calls that fail or never answer; a time-out is noticed after `timeout_s`."""

    failed: float
    timeout: float
    timeout_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """Chance of reward 1: Phi(m - spread * difficulty) for a prompt, its mean over prompts is `mean`."""

    mean: float
    spread: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Above `limit_tokens` of context all behind the prompt is replaced by `summary_tokens` tokens."""

    limit_tokens: int
    summary_tokens: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProfile:
    """Everything that is drawn for one task."""

    name: str
    share: float
    """Share of this task among the trajectories, of all tasks of the profile."""
    turns: Figure
    prompt_tokens: Figure
    observation_tokens: Figure
    output_tokens: Figure
    env_s: Figure
    reset_s: Figure
    reward_s: Figure
    reset_failures: FailureRates
    step_failures: FailureRates
    success: Success
    strip_share: float
    """Share of each output (its reasoning) that is gone from the context of the next turn."""
    compaction: Compaction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Named tasks; `context_limit_tokens` is the longest context including the output, None: no limit."""

    name: str
    description: str
    context_limit_tokens: int | None
    tasks: Mapping[str, TaskProfile]

    def guesses(self) -> tuple[str, ...]:
        """Figures that are guesses, as "task.figure"."""
        return tuple(
            f"{task.name}.{name}"
            for task in self.tasks.values()
            for name in TaskProfile.__dataclass_fields__
            if getattr(getattr(task, name), "source", "").startswith(GUESS)
        )
