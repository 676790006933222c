"""Times for recorded trajectories that have none, drawn from a named profile and marked as drawn."""

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from rollart.workload.chance import Chance
from rollart.workload.profile import Profile, TaskProfile
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trajectory import unknown_task

TimeField = Literal["reset_s", "reward_s", "env_s"]


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
        return Times(
            law.reset_s.law.at(reset_z), law.env_s.law_at(turns).at_all(scores).tolist(), law.reward_s.law.at(reward_z)
        )

    def _law(self, task: str) -> TaskProfile:
        tasks = self._profile.tasks
        if task in tasks:
            return tasks[task]
        if len(tasks) == 1:
            return next(iter(tasks.values()))
        raise unknown_task(task, tasks, f"profile {self._profile.name!r}, which is to give its times")


def missing_times(trajectory: TraceTrajectory) -> list[TimeField]:
    """Fields of time that were not recorded. What ended in a failed call is never scored, and misses no `reward_s`."""
    turns = trajectory.turns
    missing: list[TimeField] = [] if trajectory.reset_s is not None else ["reset_s"]
    if trajectory.reward_s is None and turns and turns[-1].outcome == "ok":
        missing.append("reward_s")
    if any(turn.env_s is None for turn in turns):
        missing.append("env_s")
    return missing


def fill_times(trajectories: Iterable[TraceTrajectory], profile: Profile, seed: int) -> Iterator[TraceTrajectory]:
    """The same trajectories with every missing time drawn, and marked so in `provenance`."""
    times = DrawnTimes(profile, seed)
    for index, trajectory in enumerate(trajectories):
        missing = missing_times(trajectory)
        yield _filled(trajectory, missing, times, index) if missing else trajectory


def _filled(trajectory: TraceTrajectory, missing: list[TimeField], times: DrawnTimes, index: int) -> TraceTrajectory:
    drawn = times.draw(trajectory.task, index, 0, 0, len(trajectory.turns))
    turns = tuple(
        turn if turn.env_s is not None else msgspec.structs.replace(turn, env_s=env_s)
        for turn, env_s in zip(trajectory.turns, drawn.env_s, strict=True)
    )
    return msgspec.structs.replace(
        trajectory,
        turns=turns,
        reset_s=drawn.reset_s if "reset_s" in missing else trajectory.reset_s,
        reward_s=drawn.reward_s if "reward_s" in missing else trajectory.reward_s,
        provenance=trajectory.provenance | dict.fromkeys(missing, "drawn"),
    )
