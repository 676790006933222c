"""Writes a profile's draws down as a trace."""

from collections.abc import Iterable, Iterator

from rollart.workload.knobs import Knobs
from rollart.workload.profile import Profile
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.trace import CallOutcome, Provenance, ProvenanceField, TraceTrajectory, TraceTurn
from rollart.workload.trajectory import StepOutcome, TrajectorySpec

_OUTCOMES: dict[StepOutcome, CallOutcome] = {
    StepOutcome.OK: "ok",
    StepOutcome.FAILED: "failed",
    StepOutcome.TIMEOUT: "timeout",
}
_DRAWN_FIELDS: tuple[ProvenanceField, ...] = (
    "turns",
    "prompt_tokens",
    "output_tokens",
    "env_s",
    "reset_s",
    "reward_s",
    "reward",
    "outcome",
)
NO_KNOBS = Knobs()


def synthesize(
    profile: Profile,
    *,
    tasks: Iterable[str] | None = None,
    groups: int,
    group_size: int,
    seed: int,
    knobs: Knobs = NO_KNOBS,
    groups_per_step: int | None = None,
) -> Iterator[TraceTrajectory]:
    """`groups` groups of `group_size` trajectories of each task (all of the profile by default), drawn one by one.

    With `groups_per_step`, the groups of a training step follow each other, and figures drift from step to step.
    """
    names = list(profile.tasks if tasks is None else tasks)
    per_step = groups if groups_per_step is None else groups_per_step
    for step, first in enumerate(range(0, groups, per_step)):
        workload = ProfileWorkload(knobs.turned(profile, step), seed)
        for task in names:
            for prompt in range(first, min(first + per_step, groups)):
                for member in range(group_size):
                    yield recorded(workload.trajectory(task, prompt, member, 0))


def recorded(spec: TrajectorySpec) -> TraceTrajectory:
    """What a recording of this trajectory would hold, had nothing interfered; ends at its first failure."""
    provenance: dict[ProvenanceField, Provenance] = dict.fromkeys(_DRAWN_FIELDS, "drawn")
    turns = _turns_played(spec)
    failed = not turns or turns[-1].outcome != "ok"
    cut_short = spec.truncated and len(turns) == spec.turns
    return TraceTrajectory(
        task=spec.task,
        group=f"{spec.task}-{spec.prompt}",
        member=spec.member,
        prompt_tokens=spec.prompt_tokens,
        reset_s=spec.reset_s,
        reset_outcome=_OUTCOMES[spec.reset_outcome],
        turns=tuple(turns),
        reward_s=None if failed else spec.reward_s,
        reward=None if failed else spec.reward,
        outcome="failed" if failed else "truncated" if cut_short else "ok",
        provenance=provenance,
    )


def _turns_played(spec: TrajectorySpec) -> list[TraceTurn]:
    turns: list[TraceTurn] = []
    if spec.reset_outcome is not StepOutcome.OK:
        return turns
    for index in range(spec.turns):
        outcome = StepOutcome.OK if spec.env_outcome is None else spec.env_outcome[index]
        turns.append(
            TraceTurn(
                prompt_tokens=spec.new_tokens[index],
                kept_tokens=None if spec.kept_tokens is None else spec.kept_tokens[index],
                output_tokens=spec.output_tokens[index],
                env_s=spec.env_s[index],
                outcome=_OUTCOMES[outcome],
            )
        )
        if outcome is not StepOutcome.OK:
            break
    return turns
