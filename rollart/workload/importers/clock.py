"""Time stamps of foreign files, and the spans between them.

A span that ends up to `SKEW_S` before it starts is two clocks that disagree, and counts as 0 s; a longer one is
an error in the recording.
"""

from datetime import UTC, datetime

SKEW_S = 1.0
"""What clocks of machines that are kept by NTP may differ by, with room; a guess."""


def instant(stamp: str | float) -> float:
    """Seconds since 1970 of an ISO 8601 text (UTC if it names no zone) or of a number of seconds.

    ValueError if the text is no time.
    """
    if not isinstance(stamp, str):
        return float(stamp)
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        raise ValueError(f"time stamp {stamp[:40]!r} is not a time; must be ISO 8601") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def span_s(start_s: float, end_s: float, name: str) -> float:
    """Seconds from start to end; ValueError where time runs backwards by more than `SKEW_S`."""
    seconds = end_s - start_s
    if seconds < -SKEW_S:
        raise ValueError(f"time runs backwards: {name} ends {-seconds:.3g} s before it starts; must not end before")
    return max(0.0, seconds)
