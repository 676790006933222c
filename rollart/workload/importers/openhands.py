"""OpenHands' `output.jsonl`: one object with `history` and `metrics` for each run, of version 0 and of the agent SDK.

`metrics.token_usages` has the provider's counts, one for each answer that was used; an answer that is only in
`response_latencies` was retried and is left out. An action belongs to the answer whose id it carries, in version 1 an
observation to the action of the same call. The step lasts from the first action of an answer to its last observation,
so parallel calls of tools count once. Version 1 appends the calls of its condenser to those of the agent: an answer
that no event of the agent came from is not a turn.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.clock import instant, span_s
from rollart.workload.importers.episode import Call, Episode, Outcome, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Tokens


class _ModelResponse(msgspec.Struct, frozen=True):
    id: str = ""


class _ToolCall(msgspec.Struct, frozen=True):
    model_response: _ModelResponse = _ModelResponse()


_NULL = msgspec.Raw(b"null")


class _Event(msgspec.Struct, frozen=True):
    timestamp: str | None = None
    action: msgspec.Raw = _NULL
    """Its name, in version 1 an object."""
    tool_call_metadata: _ToolCall | None = None
    """Of version 0; the others are of version 1."""
    kind: str = ""
    llm_response_id: str | None = None
    tool_call_id: str | None = None

    @property
    def acts(self) -> bool:
        """Whether it begins a call of a tool, rather than ends it."""
        return self.kind == "ActionEvent" if self.kind else bytes(self.action) != b"null"


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Tokens
    completion_tokens: Tokens
    cache_read_tokens: Tokens = 0
    response_id: str = ""


class _Metrics(msgspec.Struct, frozen=True):
    token_usages: list[_Usage] = []


class _Report(msgspec.Struct, frozen=True):
    resolved: bool | None = None


class _TestResult(msgspec.Struct, frozen=True):
    report: _Report | None = None


class _Run(msgspec.Struct, frozen=True):
    instance_id: str
    history: list[_Event]
    metrics: _Metrics | None = None
    error: str | None = None
    test_result: _TestResult | None = None
    report: _Report | None = None


class OpenHandsReader(FormatReader):
    """Reads `output.jsonl`; `instance_id` is the group."""

    format: ClassVar[str] = "openhands"
    about: ClassVar[str] = "OpenHands output.jsonl (instance_id, history[], metrics a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The first keys of a run."""
        return not sample.is_list and (sample.has("instance_id", "test_result") or sample.has("history", "metrics"))

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is a trajectory."""
        return EachRecord(_episodes)


_decode = msgspec.json.Decoder(_Run).decode


def _episodes(line: bytes) -> Iterable[Episode]:
    run = _decode(line)
    steps = _step_times(run.history)
    own = {event.llm_response_id for event in run.history if event.kind in ("ActionEvent", "MessageEvent")} - {None}
    calls = [
        Call(
            context_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cached_tokens=usage.cache_read_tokens,
            env_s=steps.get(usage.response_id),
        )
        for usage in (run.metrics.token_usages if run.metrics else ())
        if not own or usage.response_id in own
    ]
    prompt_tokens, turns = turns_of_calls(calls)
    report = run.report or (run.test_result.report if run.test_result else None)
    resolved = None if report is None else report.resolved
    yield Episode(
        task="openhands",
        group=run.instance_id,
        prompt_tokens=prompt_tokens,
        turns=turns,
        reward=None if resolved is None else float(resolved),
        outcome=_outcome(run.error),
        tokens="counted",
    )


def _step_times(history: list[_Event]) -> dict[str, float]:
    """For each answer's id, seconds from its first action to its last observation."""
    answers: dict[str | None, str] = {}
    began_s: dict[str, float] = {}
    took_s: dict[str, float] = {}
    for event in history:
        answer = _answer(event, answers)
        if answer is None or event.timestamp is None:
            continue
        at_s = instant(event.timestamp)
        if event.acts:
            answers[event.tool_call_id] = answer
            began_s.setdefault(answer, at_s)
        elif answer in began_s:
            took_s[answer] = span_s(began_s[answer], at_s, f"the step of answer {answer}")
    return took_s


def _answer(event: _Event, answers: dict[str | None, str]) -> str | None:
    """The answer of the model that an action or an observation belongs to; `answers` has those of calls of tools."""
    if event.tool_call_metadata is not None:
        return event.tool_call_metadata.model_response.id
    if event.kind == "ActionEvent":
        return event.llm_response_id
    return answers.get(event.tool_call_id) if event.tool_call_id is not None else None


def _outcome(error: str | None) -> Outcome:
    if not error:
        return "ok"
    return "truncated" if "maximum iteration" in error or "context" in error.lower() else "failed"
