"""One form of a span for the encodings that OpenTelemetry's exporters write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from rollart.workload.importers.clock import instant

MAX_TOKENS = 10**9


class _Value(msgspec.Struct, frozen=True):
    string: str | None = msgspec.field(name="stringValue", default=None)
    integer: int | str | None = msgspec.field(name="intValue", default=None)
    number: float | None = msgspec.field(name="doubleValue", default=None)


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Value = _Value()


class _Status(msgspec.Struct, frozen=True):
    code: int | str | None = None
    status_code: str | None = None


class _Context(msgspec.Struct, frozen=True):
    trace_id: str = ""


class _Span(msgspec.Struct, frozen=True):
    """Of both encodings."""

    name: str = ""
    attributes: list[_Attribute] | dict[str, Any] | None = None
    trace_id: str = msgspec.field(name="traceId", default="")
    context: _Context = _Context()
    start_nanos: int | str | None = msgspec.field(name="startTimeUnixNano", default=None)
    end_nanos: int | str | None = msgspec.field(name="endTimeUnixNano", default=None)
    start_time: str | None = None
    end_time: str | None = None
    status: _Status = _Status()


class _Scope(msgspec.Struct, frozen=True):
    spans: list[_Span] = []


class _Resource(msgspec.Struct, frozen=True):
    scopes: list[_Scope] = msgspec.field(name="scopeSpans", default=[])


class _Export(msgspec.Struct, frozen=True):
    resources: list[_Resource] = msgspec.field(name="resourceSpans")


INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
KEYS = frozenset(
    {
        "error.type",
        "gen_ai.agent.id",
        "gen_ai.agent.name",
        "gen_ai.conversation.id",
        "gen_ai.operation.name",
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        CACHED_TOKENS,
    }
)
"""Attributes that are kept; others may hold whole prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span with its attributes by name."""

    name: str
    trace_id: str
    start_s: float
    end_s: float
    failed: bool
    attributes: Mapping[str, Any]

    @property
    def answered(self) -> bool:
        """Whether it is a call that succeeded and says its tokens."""
        known = self.number(INPUT_TOKENS) is not None
        return known and not self.failed and "error.type" not in self.attributes

    def text(self, key: str) -> str | None:
        """An attribute that is a text."""
        value = self.attributes.get(key)
        return value if isinstance(value, str) and value else None

    def number(self, key: str) -> int | None:
        """A count of tokens; ValueError if it is none, or out of range."""
        value = self.attributes.get(key)
        if value is None:
            return None
        try:
            found = int(value)
        except (TypeError, ValueError, OverflowError):
            found = -1
        if not 0 <= found <= MAX_TOKENS:
            raise ValueError(f"{key} is {str(value)[:40]}; must be an integer >= 0 and <= {MAX_TOKENS}")
        return found


_decode_export = msgspec.json.Decoder(_Export).decode
_decode_span = msgspec.json.Decoder(_Span).decode


def spans(record: bytes) -> Iterator[Span]:
    """Spans of an export request, or the one of a line."""
    if b'"resourceSpans"' in record:
        for resource in _decode_export(record).resources:
            for scope in resource.scopes:
                for span in scope.spans:
                    yield _span(span)
    else:
        yield _span(_decode_span(record))


def _span(span: _Span) -> Span:
    attributes = span.attributes
    if isinstance(attributes, list):
        attributes = {found.key: _value(found.value) for found in attributes if found.key in KEYS}
    status = str(span.status.code or span.status.status_code or "")
    return Span(
        name=span.name,
        trace_id=span.trace_id or span.context.trace_id,
        start_s=_moment(span.start_nanos, span.start_time, "start"),
        end_s=_moment(span.end_nanos, span.end_time, "end"),
        failed=status in ("2", "STATUS_CODE_ERROR", "ERROR"),
        attributes={key: value for key, value in (attributes or {}).items() if key in KEYS},
    )


def _value(value: _Value) -> Any:
    found = (value.string, value.integer, value.number)
    return next((one for one in found if one is not None), None)


def _moment(nanos: int | str | None, stamp: str | None, which: str) -> float:
    if nanos is not None:
        try:
            return int(nanos) / 1e9
        except ValueError:
            raise ValueError(f"{which}TimeUnixNano is {nanos!r}; must be an integer") from None
    if stamp is None:
        raise ValueError(f"span has no {which} time; must have {which}TimeUnixNano or {which}_time")
    return instant(stamp)
