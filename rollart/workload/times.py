"""Times for recorded trajectories that have none, drawn from a named profile and marked as drawn."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from rollart.workload.chance import Chance
from rollart.workload.profile import Profile, TaskProfile
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trajectory import unknown_task


class Times(NamedTuple):
    """Seconds of one trajectory; `env_s` has one entry per turn."""

    reset_s: float
    env_s: list[float]
    reward_s: float


class DrawnTimes:
    """Draws the times of a trajectory by key. Failures are not drawn: a recording has its own outcomes."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self._profile = profile
        self._chances = {name: Chance(seed, "times", name) for name in profile.tasks}

    def draw(self, task: str, prompt: int, member: int, attempt: int, turns: int) -> Times:
        """Times for `turns` turns; a profile with a single task serves every task, else names must agree."""
        law = self._law(task)
        draw = self._chances[law.name].at(prompt, member, attempt)
        reset_z, env_z, reward_z = draw.standard_normal(3).tolist()
        shared = law.env_s.prompt_share + law.env_s.member_share
        scores = math.sqrt(shared) * env_z + math.sqrt(1.0 - shared) * draw.standard_normal(turns)
        return Times(law.reset_s.law.at(reset_z), law.env_s.law.at_all(scores).tolist(), law.reward_s.law.at(reward_z))

    def _law(self, task: str) -> TaskProfile:
        tasks = self._profile.tasks
        if task in tasks:
            return tasks[task]
        if len(tasks) == 1:
            return next(iter(tasks.values()))
        raise unknown_task(task, tasks, f"profile {self._profile.name!r}, which is to give its times")


def lacks_times(trajectory: TraceTrajectory) -> bool:
    """Whether any time was not recorded."""
    unset = trajectory.reset_s is None or trajectory.reward_s is None
    return unset or any(turn.env_s is None for turn in trajectory.turns)


def fill_times(trajectories: Iterable[TraceTrajectory], profile: Profile, seed: int) -> Iterator[TraceTrajectory]:
    """The same trajectories with every missing time drawn, and marked so in `provenance`."""
    times = DrawnTimes(profile, seed)
    for index, trajectory in enumerate(trajectories):
        yield _filled(trajectory, times, index) if lacks_times(trajectory) else trajectory


def _filled(trajectory: TraceTrajectory, times: DrawnTimes, index: int) -> TraceTrajectory:
    drawn = times.draw(trajectory.task, index, 0, 0, len(trajectory.turns))
    provenance = dict(trajectory.provenance)
    turns = trajectory.turns
    if trajectory.reset_s is None:
        provenance["reset_s"] = "drawn"
    if trajectory.reward_s is None:
        provenance["reward_s"] = "drawn"
    if any(turn.env_s is None for turn in turns):
        provenance["env_s"] = "drawn"
        turns = tuple(
            turn if turn.env_s is not None else msgspec.structs.replace(turn, env_s=env_s)
            for turn, env_s in zip(turns, drawn.env_s, strict=True)
        )
    return msgspec.structs.replace(
        trajectory,
        turns=turns,
        reset_s=drawn.reset_s if trajectory.reset_s is None else trajectory.reset_s,
        reward_s=drawn.reward_s if trajectory.reward_s is None else trajectory.reward_s,
        provenance=provenance,
    )
