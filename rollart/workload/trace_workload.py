"""Recorded trajectories, played again.

Prompt p plays recorded group p mod n of its task, member m its recorded member m mod size. A retry plays the next
member of the group that did not fail, since the same record would only fail again (as it does where all failed).
Times that were not recorded are drawn afresh for every (prompt, member, attempt), so a short recording does not
repeat its luck.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rollart.domain.errors import TraceError
from rollart.workload.profile import Profile
from rollart.workload.times import DrawnTimes, missing_times
from rollart.workload.trace import CallOutcome, TraceTrajectory
from rollart.workload.trajectory import StepOutcome, TrajectorySpec, unknown_task

_OUTCOMES: dict[CallOutcome, StepOutcome] = {
    "ok": StepOutcome.OK,
    "failed": StepOutcome.FAILED,
    "timeout": StepOutcome.TIMEOUT,
}

_NEVER_SCORED_S = 0.0
"""Reward time of what ended in a failed call; nobody asks for it."""


@dataclass(slots=True, kw_only=True)
class _Record:
    """One recorded trajectory in lists; a time is None where it was not recorded."""

    failed: bool
    complete: bool
    prompt_tokens: int
    reset_s: float | None
    reset_outcome: StepOutcome
    new_tokens: list[int]
    kept_tokens: list[int | None] | None
    output_tokens: list[int]
    env_s: list[float | None]
    env_outcome: list[StepOutcome] | None
    reward_s: float | None
    reward: float
    truncated: bool


class TraceWorkload:
    """Plays recorded trajectories; all of them are held in memory."""

    def __init__(self, trajectories: Iterable[TraceTrajectory], *, times: Profile | None = None, seed: int = 0) -> None:
        """`times` names the profile for missing times; TraceError if some are missing and none is given.

        A reward that was not recorded counts as 0; an output of no token as one token.
        """
        self._times = None if times is None else DrawnTimes(times, seed)
        groups: dict[str, dict[str, list[tuple[int, _Record]]]] = {}
        drawn: dict[str, set[str]] = {}
        for trajectory in trajectories:
            missing = missing_times(trajectory)
            if missing and times is None:
                raise TraceError(
                    f"task {trajectory.task!r}, group {trajectory.group!r}, member {trajectory.member}: "
                    f"{missing[0]} was not recorded; name a profile to draw times from"
                )
            drawn.setdefault(trajectory.task, set()).update(missing)
            members = groups.setdefault(trajectory.task, {}).setdefault(trajectory.group, [])
            members.append((trajectory.member, _record(trajectory, complete=not missing)))
        if not groups:
            raise TraceError("the trace has no trajectory; must have at least one")
        self._groups = {
            task: [[record for _, record in sorted(members, key=_member)] for members in by_group.values()]
            for task, by_group in groups.items()
        }
        self.drawn_fields = {task: frozenset(fields) for task, fields in drawn.items()}
        """Per task, the times that are drawn where they were not recorded."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the recorded tasks, in the order of the file."""
        return tuple(self._groups)

    def groups(self, task: str) -> int:
        """Number of recorded groups of a task."""
        return len(self._of(task))

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """The recorded trajectory that stands for this key; TraceError for a task that was not recorded."""
        groups = self._of(task)
        record = _member_for(groups[prompt % len(groups)], member, attempt)
        reset_s, env_s, reward_s = record.reset_s, record.env_s, record.reward_s
        if not record.complete:
            assert self._times is not None, "refused on construction"
            drawn = self._times.draw(task, prompt, member, attempt, len(env_s))
            reset_s = drawn.reset_s if reset_s is None else reset_s
            reward_s = drawn.reward_s if reward_s is None else reward_s
            env_s = [b if a is None else a for a, b in zip(env_s, drawn.env_s, strict=True)]
        return TrajectorySpec(
            task=task,
            prompt=prompt,
            member=member,
            attempt=attempt,
            prompt_tokens=record.prompt_tokens,
            reset_s=reset_s,  # type: ignore[arg-type]
            reset_outcome=record.reset_outcome,
            new_tokens=record.new_tokens,
            kept_tokens=record.kept_tokens,
            output_tokens=record.output_tokens,
            env_s=env_s,  # type: ignore[arg-type]
            env_outcome=record.env_outcome,
            reward_s=reward_s,  # type: ignore[arg-type]
            reward=record.reward,
            truncated=record.truncated,
        )

    def _of(self, task: str) -> list[list[_Record]]:
        groups = self._groups.get(task)
        if groups is None:
            raise unknown_task(task, self._groups, "the trace")
        return groups


def _member(numbered: tuple[int, _Record]) -> int:
    return numbered[0]


def _member_for(members: list[_Record], member: int, attempt: int) -> _Record:
    size = len(members)
    first = members[member % size]
    if attempt == 0:
        return first
    sound = [record for record in members if not record.failed]
    return sound[(member + attempt) % len(sound)] if sound else first


def _record(trajectory: TraceTrajectory, *, complete: bool) -> _Record:
    turns = trajectory.turns
    kept = [turn.kept_tokens for turn in turns]
    outcomes = [_OUTCOMES[turn.outcome] for turn in turns]
    return _Record(
        failed=trajectory.outcome == "failed" or trajectory.reset_outcome != "ok",
        complete=complete,
        prompt_tokens=trajectory.prompt_tokens,
        reset_s=trajectory.reset_s,
        reset_outcome=_OUTCOMES[trajectory.reset_outcome],
        new_tokens=[turn.prompt_tokens for turn in turns],
        kept_tokens=kept if any(tokens is not None for tokens in kept) else None,
        output_tokens=[max(1, turn.output_tokens) for turn in turns],
        env_s=[turn.env_s for turn in turns],
        env_outcome=outcomes if any(outcomes) else None,
        reward_s=trajectory.reward_s if trajectory.reward_s is not None or not complete else _NEVER_SCORED_S,
        reward=trajectory.reward or 0.0,
        truncated=trajectory.outcome == "truncated",
    )
