"""OpenTelemetry's GenAI spans: calls of a model and of tools, by conversation.

Spans are read in OTLP's JSON (`resourceSpans`, a line or a document) and in the form of the console exporter of
the Python SDK (an object a line). Calls of one conversation (`gen_ai.conversation.id`, else the trace) and one
agent (`gen_ai.agent.id` or `.name`) are a trajectory, in the order of their start: sub-agents are trajectories of
their own. A call with an error or without token counts was retried and is left out. The step after a call is
what its tools took together, parallel ones once; in a conversation without any span of a tool it is the time to
the next call.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from rollart.workload.importers.clock import span_s
from rollart.workload.importers.episode import Call, Episode, turns_of_calls
from rollart.workload.importers.format_reader import FormatReader, RecordReader
from rollart.workload.importers.otel_spans import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS, Span, spans
from rollart.workload.importers.records import Record, document, lines
from rollart.workload.importers.sample import Sample, look

MODEL_OPERATIONS = ("chat", "text_completion", "generate_content")
TOOL_OPERATION = "execute_tool"


class OTelReader(FormatReader):
    """Reads spans of the GenAI conventions; others are ignored."""

    format: ClassVar[str] = "otel"
    about: ClassVar[str] = "OpenTelemetry GenAI spans (OTLP JSON with resourceSpans, or console-exporter lines)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """An export request, or a span."""
        span = sample.has("attributes", "start_time") or sample.has("attributes", "startTimeUnixNano")
        return not sample.is_list and (sample.has("resourceSpans") or span)

    def records(self, path: Path) -> Iterator[Record]:
        """Lines; the whole document where it is set over several lines."""
        return document(path) if look(path).first_line == "{" else lines(path)

    def open(self, path: Path) -> RecordReader:
        """Conversations are complete at the end of the file."""
        return _Conversations(path.name.partition(".")[0] or "otel")


class _Key(NamedTuple):
    conversation: str
    agent: str


class _Conversations:
    def __init__(self, task: str) -> None:
        self._task = f"otel-{task}"[:1000]
        self._calls: dict[_Key, list[Span]] = {}
        self._tools: dict[str, list[Span]] = {}

    def read(self, record: bytes) -> Iterable[Episode]:
        for span in spans(record):
            # Checked here, where the line can still be named.
            span_s(span.start_s, span.end_s, f"span {span.name!r}")
            for key in (INPUT_TOKENS, OUTPUT_TOKENS, CACHED_TOKENS):
                span.number(key)
            conversation = span.text("gen_ai.conversation.id") or span.trace_id
            operation = span.text("gen_ai.operation.name")
            if operation in MODEL_OPERATIONS and span.answered:
                agent = span.text("gen_ai.agent.id") or span.text("gen_ai.agent.name") or ""
                self._calls.setdefault(_Key(conversation, agent), []).append(span)
            elif operation == TOOL_OPERATION:
                self._tools.setdefault(conversation, []).append(span)
        return ()

    def finish(self) -> Iterable[Episode]:
        for key, found in self._calls.items():
            found.sort(key=lambda span: span.start_s)
            tools = sorted(self._tools.get(key.conversation, ()), key=lambda span: span.start_s)
            prompt_tokens, turns = turns_of_calls(_calls(found, tools))
            yield Episode(
                task=f"{self._task}/{key.agent}"[:1000] if key.agent else self._task,
                group=key.conversation,
                prompt_tokens=prompt_tokens,
                turns=turns,
                tokens="counted",
            )


def _calls(found: list[Span], tools: list[Span]) -> list[Call]:
    calls = []
    for span, after in zip(found, [*found[1:], None], strict=True):
        until_s = float("inf") if after is None else after.start_s
        between = [tool for tool in tools if span.start_s <= tool.start_s < until_s]
        env_s: float | None = _together_s(between) if between else None
        if not between and after is not None and not tools:
            env_s = max(0.0, after.start_s - span.end_s)
        calls.append(
            Call(
                context_tokens=span.number(INPUT_TOKENS) or 0,
                output_tokens=span.number(OUTPUT_TOKENS) or 0,
                cached_tokens=span.number(CACHED_TOKENS),
                env_s=env_s,
            )
        )
    return calls


def _together_s(tools: list[Span]) -> float:
    """Seconds in which at least one of the tools ran; they are in the order of their start."""
    total_s = 0.0
    until_s = float("-inf")
    for tool in tools:
        total_s += max(0.0, tool.end_s - max(tool.start_s, until_s))
        until_s = max(until_s, tool.end_s)
    return total_s
