"""The trace schema, version 1: one recorded trajectory for each line of a JSONL file.

    {"schema": 1, "task": "SWE-bench", "group": "astropy-1", "member": 0, "prompt_tokens": 2100,
     "reset_s": 12.5, "reset_outcome": "ok",
     "turns": [{"prompt_tokens": 0, "output_tokens": 120, "env_s": 0.4},
               {"prompt_tokens": 310, "output_tokens": 88, "env_s": 1.9, "outcome": "timeout"}],
     "reward_s": 8.0, "reward": 1.0, "outcome": "failed", "provenance": {"output_tokens": "measured"}}

Tokens are integers, times are seconds; null (or an absent key) means that it was not recorded, never that it
was 0. A file whose lines have no `prompt_tokens` at the top carries the prompt in that of the first turn.
`docs/traces.md` explains every key.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec import field as struct_field

SCHEMA_VERSION = 1

Tokens = Annotated[int, Meta(ge=0, le=10**9)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Name = Annotated[str, Meta(min_length=1, max_length=1000)]
CallOutcome = Literal["ok", "failed", "timeout"]
Provenance = Literal["measured", "counted", "estimated", "drawn"]
ProvenanceField = Literal[
    "turns",
    "prompt_tokens",
    "output_tokens",
    "kept_tokens",
    "env_s",
    "reset_s",
    "reward_s",
    "reward",
    "outcome",
]


class TraceTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One generation and the environment step after it."""

    prompt_tokens: Tokens = 0
    """New tokens before this generation: the observation; in turn 0 what only this member's prompt has."""
    kept_tokens: Tokens | None = None
    """Leading tokens of the previous context, its output included, that survive; None: all of them."""
    output_tokens: Tokens
    env_s: Seconds | None = None
    outcome: CallOutcome = "ok"
    """Of the environment step; after "failed" or "timeout" there is no further turn."""


class _TrajectoryBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: Literal[1] = 1
    task: Name
    group: Name
    member: Annotated[int, Meta(ge=0, le=10**9)] = 0
    reset_s: Seconds | None = None
    reset_outcome: CallOutcome = "ok"
    turns: tuple[TraceTurn, ...]
    reward_s: Seconds | None = None
    reward: Annotated[float, Meta(ge=-1e9, le=1e9)] | None = None
    outcome: Literal["ok", "failed", "truncated"] = "ok"
    provenance: dict[ProvenanceField, Provenance] = struct_field(default_factory=dict)


class TraceTrajectory(_TrajectoryBase, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recorded trajectory.

    `group` is the id of its prompt; all members of a group share their first `prompt_tokens` tokens.
    """

    prompt_tokens: Tokens

    def __post_init__(self) -> None:
        check_trajectory(self)

    def contexts(self) -> list[int]:
        """Context in tokens at the start of each generation."""
        return contexts(self.prompt_tokens, self.turns)


class ShortFormTrajectory(_TrajectoryBase, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line without `prompt_tokens` at the top: the first turn's are the prompt."""

    def normalised(self) -> TraceTrajectory:
        """The same trajectory with its prompt at the top."""
        if not self.turns:
            raise ValueError("prompt_tokens is missing, at the top and in turns[0]; must be an integer >= 0")
        first = self.turns[0]
        bare = TraceTurn(
            kept_tokens=first.kept_tokens,
            output_tokens=first.output_tokens,
            env_s=first.env_s,
            outcome=first.outcome,
        )
        return TraceTrajectory(
            task=self.task,
            group=self.group,
            member=self.member,
            prompt_tokens=first.prompt_tokens,
            reset_s=self.reset_s,
            reset_outcome=self.reset_outcome,
            turns=(bare, *self.turns[1:]),
            reward_s=self.reward_s,
            reward=self.reward,
            outcome=self.outcome,
            provenance=self.provenance,
        )


def contexts(prompt_tokens: int, turns: tuple[TraceTurn, ...]) -> list[int]:
    """Context in tokens at the start of each generation."""
    found = []
    held = prompt_tokens
    for turn in turns:
        context = (held if turn.kept_tokens is None else turn.kept_tokens) + turn.prompt_tokens
        found.append(context)
        held = context + turn.output_tokens
    return found


def check_trajectory(trajectory: TraceTrajectory) -> None:
    """What types cannot say; ValueError names the key, the value and the bound."""
    turns = trajectory.turns
    if not turns:
        if trajectory.reset_outcome == "ok":
            raise ValueError("turns is empty though the reset was ok; must have at least one turn")
        return
    if trajectory.reset_outcome != "ok":
        raise ValueError(f"turns has {len(turns)} turns after a {trajectory.reset_outcome} reset; must be empty")
    held = trajectory.prompt_tokens
    for index, turn in enumerate(turns):
        kept = turn.kept_tokens
        if kept is not None and kept > held:
            raise ValueError(f"turns[{index}].kept_tokens is {kept}; must be <= {held}, the context before it")
        held = (held if kept is None else kept) + turn.prompt_tokens + turn.output_tokens
        if turn.outcome != "ok" and index + 1 < len(turns):
            raise ValueError(f"turns[{index}].outcome is {turn.outcome!r}; must be 'ok' unless it is the last turn")
    if turns[-1].outcome != "ok" and trajectory.outcome == "ok":
        raise ValueError(f"outcome is 'ok'; must be 'failed', as the last turn is {turns[-1].outcome!r}")
    if trajectory.prompt_tokens + turns[0].prompt_tokens == 0:
        raise ValueError("prompt_tokens is 0; the first generation must have at least one token of context")
