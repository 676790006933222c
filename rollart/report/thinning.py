"""A bounded number of spans that still show whole steps: trajectories are left out, never the rest of the time."""

from collections.abc import Iterable
from dataclasses import dataclass

from rollart.report.spans import Span, spans
from rollart.runlog.schema import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinnedSpans:
    """Spans of one trajectory in `stride`, and all spans of trainer, weights and engines' suspensions."""

    spans: list[Span]
    stride: int


def thinned_spans(records: Iterable[tuple[int, float, Record]], *, steps: int | None, limit: int) -> ThinnedSpans:
    """Spans of the first `steps` steps, in order of their end; the stride doubles while there are over `limit`.

    Members of a group have consecutive numbers, so every group is seen until the stride outgrows it. Spans without a
    trajectory are always kept, even beyond the limit; there are a few for each engine and step.
    """
    kept: list[Span] = []
    stride, room = 1, limit
    for span in spans(records, steps=steps):
        if span.trajectory is not None and span.trajectory % stride:
            continue
        kept.append(span)
        if len(kept) > room:
            stride *= 2
            kept = [each for each in kept if each.trajectory is None or each.trajectory % stride == 0]
            # Where little could be left out, the next try waits until there is enough that is new.
            room = limit if len(kept) <= 0.9 * limit else 2 * len(kept)
    return ThinnedSpans(spans=kept, stride=stride)
