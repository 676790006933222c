"""Keys of a profile file, checked by pydantic and converted at once; `docs/traces.md` explains them."""

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rollart.workload.by_turn import TurnFactors
from rollart.workload.profile import (
    GUESS,
    Compaction,
    FailureRates,
    Figure,
    Profile,
    Success,
    TaskProfile,
)
from rollart.workload.quantiles import QuantileFunction, Tail, TailFamily, check_quantiles

_LARGEST = 1e9
"""Largest value of any figure: 30 years, or more tokens than any context."""
_MOST_TURNS = 10_000
"""A trajectory is drawn as a whole, so its number of turns must be bounded."""

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=10**9)]


class _Sourced(BaseModel):
    """A figure that says where it is from: `source`, or `guess: true`, or both (a guess and its reason)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    source: str = ""
    guess: bool = False

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        if not self.source and not self.guess:
            raise ValueError("has neither source nor guess; say where the figure is from, or guess: true")
        return self

    def provenance(self) -> str:
        """Source as one text; guesses start with "guess"."""
        return (f"{GUESS}: {self.source}" if self.source else GUESS) if self.guess else self.source


class _TailKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    family: TailFamily
    start: Share = Field(alias="from")
    parameter: float = Field(gt=0.0, le=100.0)


class _LawKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    quantiles: dict[float, Annotated[float, Field(le=_LARGEST)]] = Field(min_length=1)
    tail: _TailKeys | None = None
    min: float = Field(default=0.0, ge=0.0)
    max: float | None = Field(default=None, ge=0.0, le=_LARGEST)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        check_quantiles(sorted(self.quantiles.items()), self.min, self.largest())
        top = max(self.quantiles)
        if self.tail is not None and not math.isclose(self.tail.start, top):
            raise ValueError(f"tail.from is {self.tail.start:g}; must be the highest quantile given, {top:g}")
        if self.tail is not None and top >= 1.0:
            raise ValueError("has a tail behind its maximum; leave out the quantile 1")
        return self

    def largest(self) -> float:
        """Upper bound; where none is given, infinite, but a tail ends at 1e9."""
        if self.max is not None:
            return self.max
        return math.inf if self.tail is None else _LARGEST

    def law(self) -> QuantileFunction:
        """As a quantile function."""
        tail = Tail(family=self.tail.family, parameter=self.tail.parameter) if self.tail else None
        return QuantileFunction(self.quantiles, tail=tail, minimum=self.min, maximum=self.largest())


class _FigureKeys(_Sourced, _LawKeys):
    prompt_share: Share = 0.0
    member_share: Share = 0.0
    turns_correlation: float = Field(default=0.0, ge=-1.0, le=1.0)
    by_turn: dict[Annotated[int, Field(le=_MOST_TURNS)], float] | None = None
    from_turns: dict[Annotated[int, Field(ge=2, le=_MOST_TURNS)], _LawKeys] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.prompt_share + self.member_share > 1.0:
            raise ValueError(f"prompt_share + member_share is {self.prompt_share + self.member_share:g}; at most 1")
        if self.turns_correlation and not self.member_share:
            raise ValueError("has a turns_correlation but no member_share, which is the part that it correlates")
        if self.turns_correlation and self.from_turns:
            raise ValueError("has turns_correlation and from_turns; one of them must say how it goes with the turns")
        if self.by_turn is not None:
            TurnFactors(self.by_turn)
        return self

    def smallest_quantile(self) -> float:
        """Of all its laws."""
        return min(min(law.quantiles.values()) for law in (self, *self.from_turns.values()))

    def figure(self) -> Figure:
        """As a figure of the domain."""
        return Figure(
            law=self.law(),
            prompt_share=self.prompt_share,
            member_share=self.member_share,
            source=self.provenance(),
            turns_correlation=self.turns_correlation,
            by_turn=None if self.by_turn is None else TurnFactors(self.by_turn),
            from_turns={turns: keys.law() for turns, keys in sorted(self.from_turns.items())},
        )


class _FailureKeys(_Sourced):
    failed: Share = 0.0
    timeout: Share = 0.0
    timeout_s: Seconds = 600.0

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.failed + self.timeout > 1.0:
            raise ValueError(f"failed + timeout is {self.failed + self.timeout:g}; at most 1")
        return self

    def rates(self) -> FailureRates:
        """As rates of the domain."""
        return FailureRates(
            failed=self.failed, timeout=self.timeout, timeout_s=self.timeout_s, source=self.provenance()
        )


class _SuccessKeys(_Sourced):
    mean: Share
    spread: float = Field(default=0.0, ge=0.0, le=100.0)


class _StripKeys(_Sourced):
    share: Share


class _CompactionKeys(_Sourced):
    limit_tokens: Tokens
    summary_tokens: Tokens

    def compaction(self) -> Compaction:
        """As a rule of the domain."""
        return Compaction(limit_tokens=self.limit_tokens, summary_tokens=self.summary_tokens, source=self.provenance())


class _TaskKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    share: float = Field(default=1.0, gt=0.0, le=1e9)
    turns: _FigureKeys
    prompt_tokens: _FigureKeys
    observation_tokens: _FigureKeys
    output_tokens: _FigureKeys
    env_s: _FigureKeys
    reset_s: _FigureKeys
    reward_s: _FigureKeys
    reset_failures: _FailureKeys
    step_failures: _FailureKeys
    success: _SuccessKeys
    strip_reasoning: _StripKeys | None = None
    compaction: _CompactionKeys | None = None

    @model_validator(mode="after")
    def _one_draw_each(self) -> Self:
        for name in ("turns", "prompt_tokens", "reset_s", "reward_s"):
            figure: _FigureKeys = getattr(self, name)
            if figure.by_turn is not None or figure.turns_correlation or figure.from_turns:
                raise ValueError(
                    f"{name} is drawn once a trajectory; by_turn, turns_correlation and from_turns are for turns"
                )
        return self

    @model_validator(mode="after")
    def _countable(self) -> Self:
        for name in ("turns", "prompt_tokens", "output_tokens"):
            smallest = getattr(self, name).smallest_quantile()
            if smallest < 1.0:
                raise ValueError(f"{name} falls to {smallest:g}; must stay >= 1")
        most_turns = self.turns.figure().law.quantile(1.0)
        if most_turns > _MOST_TURNS or (self.turns.tail is not None and self.turns.largest() > _MOST_TURNS):
            raise ValueError(f"turns goes beyond {_MOST_TURNS}; set its max to {_MOST_TURNS} or less")
        return self

    def task(self, name: str, all_shares: float) -> TaskProfile:
        """As a task profile of the domain."""
        figures = (
            "turns",
            "prompt_tokens",
            "observation_tokens",
            "output_tokens",
            "env_s",
            "reset_s",
            "reward_s",
        )
        return TaskProfile(
            name=name,
            share=self.share / all_shares,
            **{figure: getattr(self, figure).figure() for figure in figures},
            reset_failures=self.reset_failures.rates(),
            step_failures=self.step_failures.rates(),
            success=Success(mean=self.success.mean, spread=self.success.spread, source=self.success.provenance()),
            strip_share=self.strip_reasoning.share if self.strip_reasoning else 0.0,
            compaction=self.compaction.compaction() if self.compaction else None,
        )


class ProfileKeys(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: Literal[1] = Field(alias="schema")
    name: str = Field(min_length=1)
    description: str = ""
    context_limit_tokens: Annotated[int, Field(ge=2, le=10**9)] | None = None
    tasks: dict[str, _TaskKeys] = Field(min_length=1)

    def profile(self) -> Profile:
        """As a profile of the domain."""
        all_shares = sum(task.share for task in self.tasks.values())
        return Profile(
            name=self.name,
            description=self.description,
            context_limit_tokens=self.context_limit_tokens,
            tasks={name: task.task(name, all_shares) for name, task in self.tasks.items()},
        )
