"""Reads a profile from YAML and checks it; a wrong file gives one line that names the key."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rollart.domain.errors import TraceError
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

_MAX_FILE_BYTES = 4 << 20
"""A profile is figures typed by people; anything longer is a mistake."""

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


class _FigureKeys(_Sourced):
    quantiles: dict[float, float] = Field(min_length=1)
    tail: _TailKeys | None = None
    min: float = Field(default=0.0, ge=0.0)
    max: float | None = Field(default=None, ge=0.0, le=1e9)
    prompt_share: Share = 0.0
    member_share: Share = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_quantiles(sorted(self.quantiles.items()), self.min, self.largest())
        top = max(self.quantiles)
        if self.tail is not None and not math.isclose(self.tail.start, top):
            raise ValueError(f"tail.from is {self.tail.start:g}; must be the highest quantile given, {top:g}")
        if self.tail is not None and top >= 1.0:
            raise ValueError("has a tail behind its maximum; leave out the quantile 1")
        if self.prompt_share + self.member_share > 1.0:
            raise ValueError(f"prompt_share + member_share is {self.prompt_share + self.member_share:g}; at most 1")
        return self

    def largest(self) -> float:
        """Upper bound, infinite where none is given."""
        return math.inf if self.max is None else self.max

    def figure(self) -> Figure:
        """As a figure of the domain."""
        tail = Tail(family=self.tail.family, parameter=self.tail.parameter) if self.tail else None
        law = QuantileFunction(self.quantiles, tail=tail, minimum=self.min, maximum=self.largest())
        return Figure(
            law=law,
            prompt_share=self.prompt_share,
            member_share=self.member_share,
            source=self.provenance(),
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
    def _at_least_one(self) -> Self:
        for name in ("turns", "prompt_tokens", "output_tokens"):
            smallest = min(getattr(self, name).quantiles.values())
            if smallest < 1.0:
                raise ValueError(f"{name} falls to {smallest:g}; must stay >= 1")
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


class _ProfileKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: Literal[1] = Field(alias="schema")
    name: str = Field(min_length=1)
    description: str = ""
    context_limit_tokens: Annotated[int, Field(ge=2, le=10**9)] | None = None
    tasks: dict[str, _TaskKeys] = Field(min_length=1)


def load_profile(path: Path) -> Profile:
    """Read and check a profile file; TraceError names file, key, value and what would be right."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise TraceError(f"{path}: longer than {_MAX_FILE_BYTES >> 20} MiB; a profile is a short YAML file")
    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is not YAML: {' '.join(str(error).split())[:200]}") from error
    return profile_from_mapping(document, str(path))


def profile_from_mapping(document: object, place: str) -> Profile:
    """Check a profile given as plain mappings; `place` begins the message of a TraceError."""
    if not isinstance(document, Mapping):
        raise TraceError(f"{place}: holds {type(document).__name__}; a profile is a mapping with schema, name, tasks")
    try:
        keys = _ProfileKeys.model_validate(document)
    except ValidationError as error:
        raise TraceError(f"{place}: {_first_line(error)}") from error
    all_shares = sum(task.share for task in keys.tasks.values())
    return Profile(
        name=keys.name,
        description=keys.description,
        context_limit_tokens=keys.context_limit_tokens,
        tasks={name: task.task(name, all_shares) for name, task in keys.tasks.items()},
    )


def _first_line(error: ValidationError) -> str:
    details = error.errors(include_url=False)
    first = details[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]") or "the file"
    value = _shown(first["input"])
    message = first["msg"].removeprefix("Value error, ")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if first["type"] == "value_error":
        return f"{key}: {message}{more}"
    if first["type"] == "missing":
        return f"{key} is missing{more}"
    if first["type"] == "extra_forbidden":
        return f"{key} is not a key of a profile{more}"
    return f"{key} is {value}; {message[:1].lower()}{message[1:]}{more}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
