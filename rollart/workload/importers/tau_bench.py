"""tau-bench's historical trajectories: a JSON list of records with chat messages.

The records of one task id are one group. Its system prompt is the same in all trials, the first user message
is not (a simulated user words it anew each time), so only messages that all trials share count as the shared
prompt: a first pass over the file finds them. Tool schemas are not in the file: prompts are too short by their
length. There are no times.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.chat import ChatMessage, chat_turns, leading_prompt
from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.records import Record, elements
from rollart.workload.importers.sample import Sample


class _Trial(msgspec.Struct, frozen=True):
    task_id: int | str
    trial: int
    traj: list[ChatMessage]
    reward: float | None = None


class TauBenchReader(FormatReader):
    """Reads `historical_trajectories/*.json`; the file names the task: tau-bench-airline, -retail, or tau-bench."""

    format: ClassVar[str] = "tau-bench"
    about: ClassVar[str] = "tau-bench historical trajectories (JSON list with task_id, trial, reward, traj)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """A list of objects with the keys of a trial."""
        return sample.is_list and sample.has("task_id", "traj")

    def records(self, path: Path) -> Iterator[Record]:
        """Elements of the list."""
        return elements(path)

    def open(self, path: Path) -> RecordReader:
        """Reads the file once to learn what the trials of a task share."""
        shared = _shared_messages(path)
        task = _task_name(path)

        def episodes(record: bytes) -> Iterable[Episode]:
            trial = _decode(record)
            prompt_tokens, turns = chat_turns(trial.traj, shared[trial.task_id], self.job.count)
            yield Episode(
                task=task,
                group=str(trial.task_id),
                member=trial.trial,
                prompt_tokens=prompt_tokens,
                turns=turns,
                reward=trial.reward,
                tokens="estimated",
            )

        return EachRecord(episodes)


_decode = msgspec.json.Decoder(_Trial).decode


def _shared_messages(path: Path) -> dict[int | str, int]:
    """For each task id, how many leading messages all its trials have in common, up to the first answer."""
    prompts: dict[int | str, list[bytes]] = {}
    for record in elements(path):
        # Bad records are named when they are read for good.
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            trial = _decode(record.content or b"")
            prompt = [_digest(message) for message in leading_prompt(trial.traj)]
            known = prompts.setdefault(trial.task_id, prompt)
            same = 0
            while same < min(len(known), len(prompt)) and known[same] == prompt[same]:
                same += 1
            del known[same:]
    return {task_id: len(prompt) for task_id, prompt in prompts.items()}


def _digest(message: ChatMessage) -> bytes:
    return blake2b(msgspec.json.encode(message), digest_size=8).digest()


def _task_name(path: Path) -> str:
    for domain in ("airline", "retail"):
        if domain in path.name:
            return f"tau-bench-{domain}"
    return "tau-bench"
