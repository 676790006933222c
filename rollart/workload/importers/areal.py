"""AReaL's dumps of rollouts, and the times of its session tracer.

A line of a dump is a sample with its lengths: one turn, whose output is all that follows the prompt (an agent's
observations are in it, and cannot be told apart). `sessions.jsonl` has times but no lengths; given together with
dumps, the n-th session of a task id gives its times to the n-th sample of that task id. Alone it says nothing of
tokens and is refused.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import EachRecord, FormatReader, ImportJob, RecordReader
from rollart.workload.importers.records import Record, lines
from rollart.workload.importers.sample import Sample, look
from rollart.workload.trace import Seconds, Tokens, TraceTurn


class _SampleLine(msgspec.Struct, frozen=True):
    task_id: int | str
    seqlen: Tokens
    prompt_len: Tokens
    sample_idx: int = 0
    head_version: int | None = None
    tail_version: int | None = None
    reward: float | None = None


class _Session(msgspec.Struct, frozen=True):
    task_id: int | str | None = None
    status: str | None = None
    reward_s: Seconds | None = None
    reward_calc_s: Seconds | None = None
    """The name of an earlier version."""
    toolcall_s: Seconds | None = None


class AReaLReader(FormatReader):
    """Reads dumps; samples of one task id are a group."""

    format: ClassVar[str] = "areal"
    about: ClassVar[str] = "an AReaL dump (task_id, sample_idx, seqlen, prompt_len a line), or its sessions.jsonl"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The keys of a dump, or of a session."""
        return not sample.is_list and (_is_dump(sample) or sample.has("submit_ts"))

    def __init__(self, job: ImportJob) -> None:
        super().__init__(job)
        self._sessions: dict[str, list[_Session]] | None = None
        self._taken: dict[str, int] = {}

    def records(self, path: Path) -> Iterator[Record]:
        """Lines of a dump; none of a file of sessions, which was read before the first dump."""
        return iter(()) if look(path).has("submit_ts") else lines(path)

    def open(self, path: Path) -> RecordReader:
        """Every line of a dump is a trajectory; TraceError for sessions without any dump."""
        if self._sessions is None:
            self._sessions = _read_sessions(self.job.files)
        if self._sessions and not any(_is_dump(look(file)) for file in self.job.files):
            raise TraceError(f"{path}: has the times of sessions but no tokens; import it together with the dump files")
        return EachRecord(self._episodes)

    def _episodes(self, line: bytes) -> Iterable[Episode]:
        found = _decode(line)
        if found.seqlen < found.prompt_len:
            raise ValueError(f"seqlen is {found.seqlen}; must be >= {found.prompt_len}, the prompt_len")
        task_id = str(found.task_id)
        session = self._next_session(task_id)
        scored_s = session.reward_s if session.reward_s is not None else session.reward_calc_s
        yield Episode(
            task="areal",
            group=task_id,
            identity=f"{task_id}/{found.sample_idx}/{found.head_version}",
            prompt_tokens=found.prompt_len,
            turns=(TraceTurn(output_tokens=found.seqlen - found.prompt_len, env_s=session.toolcall_s),),
            reward_s=scored_s,
            reward=found.reward,
            tokens="counted",
            turns_known="estimated",
        )

    def _next_session(self, task_id: str) -> _Session:
        sessions = (self._sessions or {}).get(task_id, ())
        number = self._taken.get(task_id, 0)
        self._taken[task_id] = number + 1
        return sessions[number] if number < len(sessions) else _Session()


_decode = msgspec.json.Decoder(_SampleLine).decode
_decode_session = msgspec.json.Decoder(_Session).decode


def _is_dump(sample: Sample) -> bool:
    return sample.has("task_id", "seqlen", "prompt_len")


def _read_sessions(files: Iterable[Path]) -> dict[str, list[_Session]]:
    """Accepted sessions by task id, in the order of the files."""
    found: dict[str, list[_Session]] = {}
    for path in files:
        if not look(path).has("submit_ts"):
            continue
        for record in lines(path):
            # Times only add to samples: a session that cannot be read leaves its sample without times.
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                session = _decode_session(record.content or b"")
                if session.status not in ("rejected", "failed", "dropped"):
                    found.setdefault(str(session.task_id), []).append(session)
    return found
