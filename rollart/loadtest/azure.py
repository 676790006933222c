"""The traces of Azure's LLM services: CSV with a time stamp, tokens in and tokens out; nothing is measured."""

from datetime import datetime
from itertools import islice
from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.loadtest.requests import RequestLog, TimedRequest, in_order
from rollart.workload.trace_reader import read_lines

HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def read_azure(path: Path, limit: int | None) -> RequestLog:
    """The requests of an Azure trace. TraceError at the first line that is not `time,tokens,tokens`."""
    lines = read_lines(path)
    next(lines)
    requests = []
    for number, line in islice(enumerate(lines, start=2), limit):
        text = line.decode(errors="replace").strip()
        if text:
            requests.append(_request(f"{path}:{number}", text))
    return RequestLog(name=path.name, requests=in_order(requests))


def _request(place: str, text: str) -> TimedRequest:
    fields = text.split(",")
    try:
        moment, context, generated = fields
        request = TimedRequest(_seconds(moment), int(context), int(generated))
    except ValueError as error:
        raise TraceError(f"{place}: {text!r:.80} must be {','.join(HEADER)}: {error}") from error
    if request.input_tokens < 1 or request.output_tokens < 1:
        raise TraceError(f"{place}: {text!r:.80} has no tokens in or out; both must be 1 or more")
    return request


def _seconds(moment: str) -> float:
    """Seconds of a time stamp, to the 100 ns that the traces give; which zone it is in does not matter here."""
    whole, _, fraction = moment.partition(".")
    digits, _, _ = fraction.partition("+")
    seconds = datetime.fromisoformat(whole.strip() + "+00:00").timestamp()
    return seconds + (int(digits) / 10 ** len(digits) if digits else 0.0)
