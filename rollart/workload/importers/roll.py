"""ROLL's dump of agentic rollouts: rows with `trajectory_data`, an object or its JSON text.

It has sums and means of a trajectory, not its turns: every turn gets the mean output and the mean step time, and
contexts run on a straight line from the shortest to the longest prompt. The sums are right, the turns are
estimates.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from rollart.workload.importers.episode import Call, Episode, Outcome, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Seconds

Length = Annotated[float, Meta(ge=0.0, le=1e9)]


class _EnvInfo(msgspec.Struct, frozen=True):
    tag: str | None = None
    group_id: int | str | None = None
    episode_id: int | str | None = None
    seed: int | str | None = None


class _Timing(msgspec.Struct, frozen=True):
    traj_time_reset: Seconds | None = None
    traj_time_step: Seconds | None = None
    """Mean over the steps, as are those of the lengths below."""


class _Lengths(msgspec.Struct, frozen=True):
    step_response_length: Length
    step_prompt_length: Length
    step_prompt_length_min: Length | None = None
    step_prompt_length_max: Length | None = None
    num_actions: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    trajectory_length: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    response_length: Length | None = None
    truncated: bool = False


class _Rewards(msgspec.Struct, frozen=True):
    episode_reward: float | None = None
    step_rewards: list[float] | None = None


class _Failure(msgspec.Struct, frozen=True):
    has_failure: bool = False


class _Trajectory(msgspec.Struct, frozen=True):
    length_info: _Lengths
    timing_info: _Timing = _Timing()
    reward_info: _Rewards = _Rewards()
    failure_info: _Failure = _Failure()
    env_info: _EnvInfo = _EnvInfo()
    trajectory_id: str | None = None


class _Row(msgspec.Struct, frozen=True):
    trajectory_data: _Trajectory | str | None


class RollReader(FormatReader):
    """Reads JSONL rows; rows without `trajectory_data` (placeholders of failed rollouts) are left out."""

    format: ClassVar[str] = "roll"
    about: ClassVar[str] = "a ROLL rollout dump (rows with trajectory_data)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The column that holds the trajectory."""
        return not sample.is_list and sample.has("trajectory_data")

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every row is a trajectory."""
        return EachRecord(_episodes)


_decode = msgspec.json.Decoder(_Row).decode
_decode_trajectory = msgspec.json.Decoder(_Trajectory).decode


def _episodes(row: bytes) -> Iterable[Episode]:
    data = _decode(row).trajectory_data
    if data is None or data == "":
        return
    found = _decode_trajectory(data) if isinstance(data, str) else data
    prompt_tokens, turns = turns_of_calls(_calls(found))
    yield Episode(
        task=found.env_info.tag or "roll",
        group=_group(found),
        identity=found.trajectory_id,
        prompt_tokens=prompt_tokens,
        turns=turns,
        reset_s=found.timing_info.traj_time_reset,
        reward=found.reward_info.episode_reward,
        outcome=_outcome(found),
        tokens="estimated",
        env="estimated",
    )


def _calls(found: _Trajectory) -> list[Call]:
    lengths = found.length_info
    turns = lengths.num_actions or lengths.trajectory_length or len(found.reward_info.step_rewards or ())
    if not turns:
        raise ValueError("length_info has no num_actions; must be an integer >= 1")
    first = _either(lengths.step_prompt_length_min, lengths.step_prompt_length)
    last = _either(lengths.step_prompt_length_max, lengths.step_prompt_length)
    if last < first:
        raise ValueError(f"step_prompt_length_max is {last:g}; must be >= {first:g}, the minimum")
    climb = (last - first) / max(1, turns - 1)
    return [
        Call(
            context_tokens=max(1, round(first + climb * turn)),
            output_tokens=_share(lengths.step_response_length, turn),
            env_s=found.timing_info.traj_time_step,
        )
        for turn in range(turns)
    ]


def _share(mean: float, turn: int) -> int:
    """Whole tokens of a turn, such that all turns together come to the mean times their number."""
    return round(mean * (turn + 1)) - round(mean * turn)


def _either(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _group(found: _Trajectory) -> str:
    info = found.env_info
    parts = (info.group_id, info.episode_id, info.seed)
    if any(part is not None for part in parts):
        return "-".join(str(part) for part in parts if part is not None)
    return found.trajectory_id or "all"


def _outcome(found: _Trajectory) -> Outcome:
    if found.length_info.truncated:
        return "truncated"
    return "failed" if found.failure_info.has_failure else "ok"
