"""What an episode asks of engine and environment, attempts that fail included, read off a workload.

An episode ends as the control plane ends it: with its last turn, at the turn limit, or at the context limit. A failed
reset or step costs its time, the back-off and all that was generated; after the last attempt another member takes over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rollart.domain.task import Task
from rollart.sched.parts.recovery import Recovery
from rollart.workload.trajectory import StepOutcome, TrajectorySpec, Workload

_MOST_ATTEMPTS = 8
"""Attempts looked at; a profile that fails this often in a row is not planned for."""


@dataclass(slots=True, kw_only=True)
class Episode:
    """Sums over one trajectory; those of failed attempts are in all but `length`, `turns` and `held_tokens`."""

    output_tokens: float = 0.0
    new_tokens: float = 0.0
    """Prompt and observations: what is prefilled where the prefix cache holds the history."""
    prompt_tokens: float = 0.0
    """The part of `new_tokens` that the whole group shares."""
    history_tokens: float = 0.0
    """Sum of the contexts of all turns: what is prefilled where it does not."""
    read_tokens: float = 0.0
    """Context that the decode iterations read, summed over the generated tokens."""
    environment_s: float = 0.0
    busy_s: float = 0.0
    """The part of `environment_s` that keeps cores busy."""
    held_tokens: float = 0.0
    """Mean context over the turns."""
    length: int = 0
    """Tokens that are trained on."""
    turns: int = 0
    reward_s: float = 0.0
    rounds: list["Round"] = field(default_factory=list)
    """What happens in turn, failed attempts included: the last has no output where an environment came last."""


@dataclass(slots=True, kw_only=True)
class Round:
    """A wait for the environment (resets, retries and their back-off included), and the generation after it."""

    wait_s: float = 0.0
    new_tokens: int = 0
    output_tokens: int = 0


def episode(workload: Workload, task: Task, limit: int, recovery: Recovery, prompt: int, member: int) -> Episode:
    """The episode of a member, from its first attempt to the one that succeeds; `limit` is that of the context."""
    found = Episode(rounds=[Round()])
    for attempt in range(_MOST_ATTEMPTS):
        spec = workload.trajectory(task.name, prompt, member, attempt)
        if _played(found, spec, task, limit, recovery):
            return found
        back_off_s = recovery.retry_after_s(attempt + 1) or 0.0
        found.environment_s += back_off_s
        found.rounds[-1].wait_s += back_off_s
    return found


def _played(found: Episode, spec: TrajectorySpec, task: Task, limit: int, recovery: Recovery) -> bool:
    """Add an attempt; whether it came to its end."""
    if not _waited(found, spec.reset_s, spec.reset_outcome, recovery.reset_timeout_s):
        return False
    contexts: list[float] = []
    total = 0
    found.prompt_tokens += spec.prompt_tokens
    for turn, new, context, output in _turns(spec, task.max_turns, limit):
        found.new_tokens += new
        found.history_tokens += context
        found.output_tokens += output
        found.read_tokens += output * (context + output / 2)
        found.rounds[-1].new_tokens, found.rounds[-1].output_tokens = new, output
        found.rounds.append(Round())
        contexts.append(context + output)
        total += new + output
        if context + output >= limit:
            break
        outcome = StepOutcome.OK if spec.env_outcome is None else spec.env_outcome[turn]
        if not _waited(found, spec.env_s[turn], outcome, recovery.step_timeout_s):
            return False
    found.length = max(1, min(limit, total))
    found.turns = max(1, len(contexts))
    found.held_tokens = sum(contexts) / found.turns
    found.reward_s = spec.reward_s
    return True


def _turns(spec: TrajectorySpec, most: int, limit: int) -> Iterator[tuple[int, int, int, int]]:
    """Turn, new tokens, context and output of every turn that is played."""
    for turn, context in enumerate(spec.contexts()):
        if turn >= most or context >= limit:
            return
        new = spec.new_tokens[turn] + (spec.prompt_tokens if turn == 0 else 0)
        yield turn, new, context, min(spec.output_tokens[turn], limit - context)


def _waited(found: Episode, work_s: float, outcome: StepOutcome, timeout_s: float) -> bool:
    """Add a reset or step; whether it answered in time and well."""
    found.environment_s += min(work_s, timeout_s)
    found.rounds[-1].wait_s += min(work_s, timeout_s)
    found.busy_s += min(work_s, timeout_s)
    return outcome is StepOutcome.OK and work_s <= timeout_s
