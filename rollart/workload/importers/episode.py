"""What a reader found in a foreign file: one trajectory, before it is numbered within its group.

Readers know a call of the model in one of two ways. Where the file says how long the whole prompt was, a
`Call` has it, and `turns_of_calls` finds what was new by comparing it with what stood before. Where only texts
are known, the reader builds the turns itself (`chat`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rollart.workload.trace import CallOutcome, Provenance, ProvenanceField, TraceTrajectory, TraceTurn

NAME_LENGTH = 1000
LARGEST = 1e9
"""Bounds of the trace schema."""
Outcome = Literal["ok", "failed", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One generation with the length of its whole prompt."""

    context_tokens: int
    """All tokens of the prompt, cached ones too."""
    output_tokens: int
    cached_tokens: int | None = None
    """Of the context, those that the provider found in its cache; used only where the context shrank."""
    env_s: float | None = None
    outcome: CallOutcome = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One trajectory of a foreign file. Times are in seconds, None where not recorded."""

    task: str
    group: str
    member: int | None = None
    """Number within the group where the file has one; None: counted in the order of reading."""
    identity: str | None = None
    """Id of this very trajectory where the file has one: a second one is a duplicate."""
    alone: bool = False
    """The reader made the group up for this one; nothing is remembered of it, for files of millions of requests."""
    prompt_tokens: int
    turns: tuple[TraceTurn, ...]
    reset_s: float | None = None
    reset_outcome: CallOutcome = "ok"
    reward_s: float | None = None
    reward: float | None = None
    outcome: Outcome = "ok"
    tokens: Provenance
    """How token counts came about: "counted" by the provider or an engine, or "estimated" from texts."""
    env: Provenance = "measured"
    """How the times of environment steps came about, where there are any."""
    turns_known: Provenance = "counted"
    """How the number of turns came about."""
    kept: Provenance = "estimated"
    """How `kept_tokens` came about, where a context lost something."""
    phases: Provenance = "measured"
    """How the times of resets and rewards, and rewards, came about, where there are any."""

    def trajectory(self, member: int, shared_tokens: int | None = None) -> TraceTrajectory:
        """As member of its group, whose first member had a prompt of `shared_tokens`.

        ValueError if it breaks the trace schema.
        """
        self._check_bounds(member)
        prompt_tokens, turns = self.prompt_tokens, self.turns
        if shared_tokens is not None and shared_tokens < prompt_tokens and turns:
            first = turns[0]
            own = first.prompt_tokens + prompt_tokens - shared_tokens
            prompt_tokens = shared_tokens
            turns = (_with_prompt(first, own), *turns[1:])
        return TraceTrajectory(
            task=self.task,
            group=self.group,
            member=member,
            prompt_tokens=prompt_tokens,
            reset_s=self.reset_s,
            reset_outcome=self.reset_outcome,
            turns=turns,
            reward_s=self.reward_s,
            reward=self.reward,
            outcome=self.outcome,
            provenance=self._provenance(),
        )

    def _check_bounds(self, member: int) -> None:
        """What the decoder of a foreign file did not check; ValueError names the value and the bound."""
        for name in ("task", "group"):
            length = len(getattr(self, name))
            if not 1 <= length <= NAME_LENGTH:
                raise ValueError(f"{name} has {length} characters; must have 1 to {NAME_LENGTH}")
        if member < 0:
            raise ValueError(f"number within the group is {member}; must be >= 0")
        if self.reward is not None and not -LARGEST <= self.reward <= LARGEST:
            raise ValueError(f"reward is {self.reward}; must be a finite number from -1e9 to 1e9")
        for tokens in (self.prompt_tokens, *(turn.prompt_tokens for turn in self.turns)):
            if not 0 <= tokens <= LARGEST:
                raise ValueError(f"a prompt has {tokens} tokens; must be from 0 to 1e9")
        for took_s in (self.reset_s, self.reward_s, *(turn.env_s for turn in self.turns)):
            if took_s is not None and not 0.0 <= took_s <= LARGEST:
                raise ValueError(f"a time is {took_s} s; must be from 0 to 1e9")

    def _provenance(self) -> dict[ProvenanceField, Provenance]:
        found: dict[ProvenanceField, Provenance] = {
            "turns": self.turns_known,
            "prompt_tokens": self.tokens,
            "output_tokens": self.tokens,
        }
        if any(turn.kept_tokens is not None for turn in self.turns):
            found["kept_tokens"] = self.kept
        if any(turn.env_s is not None for turn in self.turns):
            found["env_s"] = self.env
        for name in ("reset_s", "reward_s", "reward"):
            if getattr(self, name) is not None:
                found[name] = self.phases
        return found


@dataclass(slots=True, kw_only=True)
class Growth:
    """How much of a context was there before, call after call."""

    first_tokens: int = 0
    before_tokens: int = 0
    """Context of the previous generation."""
    held_tokens: int = 0
    """The same with its output."""
    calls: int = field(default=0)

    def next(self, call: Call) -> tuple[int | None, int]:
        """(kept tokens, new tokens) of a call; kept is None where everything survived."""
        context = call.context_tokens
        kept: int | None = None
        if not self.calls:
            self.first_tokens = context
            new = context
        elif context >= self.held_tokens:
            new = context - self.held_tokens
        else:
            kept = self._survivors(call)
            new = context - kept
        self.calls += 1
        self.before_tokens, self.held_tokens = context, context + call.output_tokens
        return kept, new

    def _survivors(self, call: Call) -> int:
        """Of a context that shrank: all before the output if that fits, else the cached part, else the first prompt."""
        if call.context_tokens >= self.before_tokens:
            return self.before_tokens
        survivors = call.cached_tokens or self.first_tokens
        return min(survivors, call.context_tokens, self.held_tokens)


def turns_of_calls(calls: Sequence[Call]) -> tuple[int, tuple[TraceTurn, ...]]:
    """(tokens of the first prompt, turns); ValueError if there is no call."""
    if not calls:
        raise ValueError("holds no call of a model; must have at least one with its tokens")
    growth = Growth()
    turns: list[TraceTurn] = []
    for call in calls:
        kept, new = growth.next(call)
        turns.append(
            TraceTurn(
                prompt_tokens=new if turns else 0,
                kept_tokens=kept,
                output_tokens=call.output_tokens,
                env_s=call.env_s,
                outcome=call.outcome,
            )
        )
    return calls[0].context_tokens, tuple(turns)


def _with_prompt(turn: TraceTurn, prompt_tokens: int) -> TraceTurn:
    return TraceTurn(
        prompt_tokens=prompt_tokens,
        kept_tokens=turn.kept_tokens,
        output_tokens=turn.output_tokens,
        env_s=turn.env_s,
        outcome=turn.outcome,
    )
