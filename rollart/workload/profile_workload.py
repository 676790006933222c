"""Trajectories drawn from a profile.

A prompt's difficulty has two independent parts, standard normals that its group and all retries share: one moves
the number of turns, the other the lengths and times of each turn (by their `prompt_share`), and both lower the
chance of success. Were they one, prompts of many turns would have the longer ones and the lengths of all turns
together would not have the profile's distribution. Members and turns add their own noise; all latent quantities
are standard normals, so every figure keeps its distribution exactly (but for what the context limit cuts off).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rollart.domain.errors import TraceError
from rollart.workload.chance import Chance
from rollart.workload.context import ContextRules, plan_context
from rollart.workload.latent import TrajectoryLatent, TurnLatents
from rollart.workload.profile import FailureRates, Profile, Success, TaskProfile
from rollart.workload.trajectory import StepOutcome, TrajectorySpec, unknown_task

_PROMPTS_REMEMBERED = 1 << 16
"""Prompts are remembered only to save time; forgetting one changes nothing."""
_NEVER = -math.inf
_HALF_EACH = math.sqrt(0.5)
"""The sum of two standard normals times this is one again."""


class ProfileWorkload:
    """Draws trajectories of the tasks of one profile; the same seed gives the same ones in any order."""

    def __init__(self, profile: Profile, seed: int, *, context_limit_tokens: int | None = None) -> None:
        """`context_limit_tokens` overrides the profile's limit; TraceError if it is below 2."""
        limit = profile.context_limit_tokens if context_limit_tokens is None else context_limit_tokens
        if limit is not None and limit < 2:
            raise TraceError(f"context_limit_tokens is {limit}; must be >= 2, for a prompt and an output")
        self.profile = profile
        self._draws = {name: _TaskDraw(task, seed, limit) for name, task in profile.tasks.items()}

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order of the profile."""
        return tuple(self._draws)

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """Draw the trajectory of this key; TraceError for a task that the profile does not have."""
        draw = self._draws.get(task)
        if draw is None:
            raise unknown_task(task, self._draws, f"profile {self.profile.name!r}")
        return draw.trajectory(prompt, member, attempt)


class _Prompt(NamedTuple):
    turns_score: float
    length_score: float
    tokens: int


class _Outcomes:
    """Failure rates as thresholds on a normal score."""

    __slots__ = ("failed_below", "timeout_below", "timeout_s")

    def __init__(self, rates: FailureRates) -> None:
        both = rates.failed + rates.timeout
        self.failed_below = float(ndtri(rates.failed)) if rates.failed else _NEVER
        self.timeout_below = float(ndtri(both)) if both else _NEVER
        self.timeout_s = rates.timeout_s

    @property
    def possible(self) -> bool:
        """Whether anything can go wrong."""
        return self.timeout_below > _NEVER

    def of(self, score: float) -> StepOutcome:
        """What happens at this score."""
        if score >= self.timeout_below:
            return StepOutcome.OK
        return StepOutcome.FAILED if score < self.failed_below else StepOutcome.TIMEOUT


class _TaskDraw:
    """The drawing of one task."""

    def __init__(self, task: TaskProfile, seed: int, context_limit_tokens: int | None) -> None:
        self._task = task
        self._members = Chance(seed, "member", task.name)
        self._prompts = Chance(seed, "prompt", task.name)
        self._known_prompts: dict[int, _Prompt] = {}
        self._limit = context_limit_tokens
        self._rules = ContextRules(
            strip_share=task.strip_share, compaction=task.compaction, limit_tokens=context_limit_tokens
        )
        self._turns = TrajectoryLatent(task.turns)
        self._each_turn = TurnLatents((task.output_tokens, task.observation_tokens, task.env_s))
        self._reset = TrajectoryLatent(task.reset_s)
        self._reward = TrajectoryLatent(task.reward_s)
        self._reset_outcomes = _Outcomes(task.reset_failures)
        self._step_outcomes = _Outcomes(task.step_failures)
        self._success_at = _success_score(task.success)

    def trajectory(self, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        known = self._known_prompts.get(prompt) or self._prompt(prompt)
        length_score = known.length_score
        draw = self._members.at(prompt, member, attempt)
        turns_z, length_z, env_z, reset_z, reset_fate, success_z, reward_z = draw.standard_normal(7).tolist()
        turns_score = self._turns.score(known.turns_score, turns_z)
        turns = max(1, round(self._turns.at(turns_score)))
        noise = draw.standard_normal((4, turns))
        values = self._each_turn.values(length_score, turns_score, (length_z, length_z, env_z), noise[:3])
        output, observation = _whole(values[:2])
        observation[0] = 0
        plan = plan_context(self._rules, known.tokens, observation, output)
        turns = len(plan.output_tokens)
        env_s = values[2, :turns].tolist()
        env_outcome = self._fates(noise[3, :turns].tolist(), env_s) if self._step_outcomes.possible else None
        reset_outcome = self._reset_outcomes.of(reset_fate)
        difficulty = (known.turns_score + length_score) * _HALF_EACH
        timed_out = reset_outcome is StepOutcome.TIMEOUT
        solved = not plan.truncated and success_z < self._success_at - self._task.success.spread * difficulty
        return TrajectorySpec(
            task=self._task.name,
            prompt=prompt,
            member=member,
            attempt=attempt,
            prompt_tokens=known.tokens,
            reset_s=self._reset_outcomes.timeout_s if timed_out else self._reset.value(length_score, reset_z),
            reset_outcome=reset_outcome,
            new_tokens=plan.new_tokens,
            kept_tokens=plan.kept_tokens,
            output_tokens=plan.output_tokens,
            env_s=env_s,
            env_outcome=env_outcome,
            reward_s=self._reward.value(length_score, reward_z),
            reward=1.0 if solved else 0.0,
            truncated=plan.truncated,
        )

    def _prompt(self, prompt: int) -> _Prompt:
        """Difficulty and tokens of a prompt; at least one token of the context limit is left for output."""
        turns_score, length_score, own_z = self._prompts.at(prompt).standard_normal(3).tolist()
        figure = self._task.prompt_tokens
        score = math.sqrt(figure.prompt_share) * length_score + math.sqrt(1.0 - figure.prompt_share) * own_z
        tokens = max(1, round(figure.law.at(score)))
        known = _Prompt(turns_score, length_score, tokens if self._limit is None else min(tokens, self._limit - 1))
        if len(self._known_prompts) >= _PROMPTS_REMEMBERED:
            self._known_prompts.clear()
        self._known_prompts[prompt] = known
        return known

    def _fates(self, scores: list[float], env_s: list[float]) -> list[StepOutcome] | None:
        """Outcomes of the steps; sets the time of those that never answer."""
        outcomes = self._step_outcomes
        if min(scores) >= outcomes.timeout_below:
            return None
        fates = [outcomes.of(score) for score in scores]
        for turn, fate in enumerate(fates):
            if fate is StepOutcome.TIMEOUT:
                env_s[turn] = outcomes.timeout_s
        return fates


def _whole(values: NDArray[np.float64]) -> list[list[int]]:
    """Values >= 0, rounded to the nearest integer."""
    rows: list[list[int]] = (values + 0.5).astype(np.int64).tolist()
    return rows


def _success_score(success: Success) -> float:
    """m with mean over z of Phi(m - spread z) = `success.mean`: Phi^-1(mean) * sqrt(1 + spread^2)."""
    return float(ndtri(success.mean)) * math.sqrt(1.0 + success.spread**2)
