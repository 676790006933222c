"""Inspect's logs: `.json`, or the `.eval` archive with a member for each sample.

Turns are the `model` events of a sample, with the provider's counts, in the order of their start; those of a
scorer, of a role other than the solver's, and those that failed or were still pending are left out. A step
lasts from one answer's completion to the start of the next call. Logs without `completed` (before 2025) have no
step times: the time stamp alone does not say whether a call began or ended then. A sample's epochs, and its
epochs in further runs, are the members of a group.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.clock import instant, span_s
from rollart.workload.importers.episode import Call, Episode, Outcome, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.inspect_header import Log, log_of_archive, log_of_document
from rollart.workload.importers.records import Record, archive_members, elements
from rollart.workload.importers.sample import Sample, look
from rollart.workload.trace import Tokens

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters for correct, partly correct, incorrect, no answer."""


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    input_tokens_cache_read: Tokens | None = None
    input_tokens_cache_write: Tokens | None = None
    total_tokens: Tokens | None = None

    def context_tokens(self) -> int:
        """All of the prompt: some providers count cached tokens apart, which the total tells."""
        cached = (self.input_tokens_cache_read or 0) + (self.input_tokens_cache_write or 0)
        apart = self.total_tokens == self.input_tokens + self.output_tokens + cached
        return self.input_tokens + (cached if apart else 0)


class _Output(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _Event(msgspec.Struct, frozen=True):
    event: str
    timestamp: str
    completed: str | None = None
    output: _Output | str | None = None
    role: str | None = None
    action: str | None = None
    type: str | None = None
    id: str | None = None
    pending: bool | None = None


class _Score(msgspec.Struct, frozen=True):
    value: str | float | bool | dict[str, float | str | bool] | list[float | str | bool] | None = None


class _Limit(msgspec.Struct, frozen=True):
    type: str = ""


class _Sample(msgspec.Struct, frozen=True):
    id: int | str
    epoch: int
    events: list[_Event] = []
    scores: dict[str, _Score] | None = None
    error: msgspec.Raw = msgspec.Raw()
    limit: _Limit | None = None


class InspectReader(FormatReader):
    """Reads logs of both kinds; the evaluated task is the task."""

    format: ClassVar[str] = "inspect"
    about: ClassVar[str] = "an Inspect log (.json with eval and samples[], or the .eval archive)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The header of a log; of an archive, that it is one."""
        return sample.is_zip or (not sample.is_list and sample.has("version", "status", "eval"))

    def records(self, path: Path) -> Iterator[Record]:
        """The samples."""
        return archive_members(path, "samples/") if look(path).is_zip else elements(path, "samples")

    def open(self, path: Path) -> RecordReader:
        """Every sample is a trajectory; TraceError for an archive without a log's header."""
        log = log_of_archive(path) if look(path).is_zip else log_of_document(path)
        return EachRecord(lambda record: _episodes(record, log))


_decode = msgspec.json.Decoder(_Sample).decode


def _episodes(record: bytes, log: Log) -> Iterable[Episode]:
    sample = _decode(record)
    if sample.epoch < 1:
        raise ValueError(f"epoch is {sample.epoch}; must be >= 1")
    prompt_tokens, turns = turns_of_calls(_calls(sample.events))
    yield Episode(
        task=log.task,
        group=str(sample.id),
        identity=f"sample {sample.id} epoch {sample.epoch} of run {log.run}",
        prompt_tokens=prompt_tokens,
        turns=turns,
        reset_s=_phase_s(sample.events, "init"),
        reward_s=_phase_s(sample.events, "scorer"),
        reward=_reward(sample.scores),
        outcome=_outcome(sample),
        tokens="counted",
    )


def _calls(events: list[_Event]) -> list[Call]:
    answered = [event for event in _before_scoring(events) if _usage(event) is not None and event.role is None]
    answered.sort(key=lambda event: instant(event.timestamp))
    calls = []
    for event, after in zip(answered, [*answered[1:], None], strict=True):
        usage = _usage(event)
        assert usage is not None
        env_s = None
        if after is not None and event.completed is not None:
            # Calls that overlap (sub-agents, parallel solvers) have no step between them.
            env_s = max(0.0, instant(after.timestamp) - instant(event.completed))
        calls.append(
            Call(
                context_tokens=usage.context_tokens(),
                output_tokens=usage.output_tokens,
                cached_tokens=usage.input_tokens_cache_read,
                env_s=env_s,
            )
        )
    return calls


def _usage(event: _Event) -> _Usage | None:
    if event.event != "model" or event.pending or not isinstance(event.output, _Output):
        return None
    usage = event.output.usage
    return usage if usage is not None and usage.context_tokens() else None


def _begins(event: _Event, kind: str) -> bool:
    """A span begins, in the form of today or of logs before 2025."""
    span = event.event == "span_begin" or (event.event == "step" and event.action == "begin")
    return span and event.type == kind


def _before_scoring(events: list[_Event]) -> list[_Event]:
    for index, event in enumerate(events):
        if _begins(event, "scorer") or _begins(event, "scorers"):
            return events[:index]
    return events


def _phase_s(events: list[_Event], kind: str) -> float | None:
    """Seconds of all spans of a kind; None if there is none."""
    total_s: float | None = None
    began: _Event | None = None
    for event in events:
        if began is None and _begins(event, kind):
            began = event
        elif began is not None and _ends(event, began):
            took_s = span_s(instant(began.timestamp), instant(event.timestamp), f"the {kind} span")
            total_s = (total_s or 0.0) + took_s
            began = None
    return total_s


def _ends(event: _Event, began: _Event) -> bool:
    if began.event == "span_begin":
        return event.event == "span_end" and event.id == began.id
    return event.event == "step" and event.action == "end" and event.type == began.type


def _reward(scores: dict[str, _Score] | None) -> float | None:
    """Mean over scorers of their values; letters by `GRADES`, values that are neither are left out."""
    found = [number for score in (scores or {}).values() for number in _numbers(score.value)]
    return sum(found) / len(found) if found else None


def _numbers(value: object) -> list[float]:
    if isinstance(value, bool | int | float):
        return [float(value)]
    if isinstance(value, str):
        return [GRADES[value]] if value in GRADES else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        numbers = [number for inner in value for number in _numbers(inner)]
        return [sum(numbers) / len(numbers)] if numbers else []
    return []


def _outcome(sample: _Sample) -> Outcome:
    if sample.limit is not None:
        return "truncated"
    return "failed" if bytes(sample.error) not in (b"", b"null") else "ok"
