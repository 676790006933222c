"""tau-bench's historical trajectories: a JSON list of records with chat messages.

The records of one task id are one group. Its system prompt is the same in all trials, the first user message
is not (a simulated user words it anew each time), so only messages that all trials share count as the shared
prompt. Tool schemas are not in the file: prompts are too short by their length. There are no times.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.trace import TraceTrajectory
from rollart.workload.whole_file import read_whole


class _Record(msgspec.Struct, frozen=True):
    task_id: int | str
    trial: int
    traj: list[ChatMessage]
    reward: float | None = None


class TauBenchImporter:
    """Reads `historical_trajectories/*.json`, plain or gzip."""

    format = "tau-bench"
    about = "tau-bench historical trajectories (JSON list with task_id, trial, reward, traj)"

    def read(self, path: Path) -> Iterator[TraceTrajectory]:
        """One trajectory per record; the file names the task: tau-bench-airline, -retail, or tau-bench."""
        records = _decode(path)
        shared = _shared_messages(records)
        task = _task_name(path)
        for index, record in enumerate(records):
            try:
                prompt_tokens, turns = chat_turns(record.traj, shared[record.task_id])
                yield TraceTrajectory(
                    task=task,
                    group=str(record.task_id),
                    member=record.trial,
                    prompt_tokens=prompt_tokens,
                    turns=turns,
                    reward=record.reward,
                    provenance={
                        "turns": "counted",
                        "prompt_tokens": "estimated",
                        "output_tokens": "estimated",
                        "reward": "measured",
                    },
                )
            except ValueError as error:
                raise TraceError(f"{path}: record {index}: {error}") from error


def _decode(path: Path) -> list[_Record]:
    try:
        records = msgspec.json.decode(read_whole(path), type=list[_Record])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"{path}: is not a tau-bench file: {error}; must be a list of records") from error
    if not records:
        raise TraceError(f"{path}: holds no record; must be a list of at least one tau-bench record")
    return records


def _shared_messages(records: list[_Record]) -> dict[int | str, int]:
    """For each task id, how many leading messages all its trials have in common, up to the first answer."""
    prompts: dict[int | str, list[ChatMessage]] = {}
    for record in records:
        prompt = list(leading_prompt(record.traj))
        known = prompts.setdefault(record.task_id, prompt)
        same = 0
        while same < min(len(known), len(prompt)) and known[same] == prompt[same]:
            same += 1
        prompts[record.task_id] = known[:same]
    return {task_id: len(prompt) for task_id, prompt in prompts.items()}


def _task_name(path: Path) -> str:
    for domain in ("airline", "retail"):
        if domain in path.name:
            return f"tau-bench-{domain}"
    return "tau-bench"
