"""How a trajectory ends, and why something on its way failed."""

from enum import StrEnum


class End(StrEnum):
    """The one end of a trajectory; truncation by context or turn limit is a property, not an end."""

    TRAINED = "trained"
    """In a batch that the trainer took."""
    STALE = "stale"
    """Broke the staleness rule before it was consumed."""
    SURPLUS = "surplus"
    """Redundant: its group or its batch was complete without it."""
    FILTERED = "filtered"
    """Its group gave no learning signal."""
    FAILED = "failed"
    """Its environment or reward failed more often than the recovery rule retries."""
    UNFINISHED = "unfinished"
    """The run ended first."""


class Cause(StrEnum):
    """Why an environment or a reward did not answer as it should."""

    ERROR = "error"
    """It answered with an error, or crashed."""
    TIMEOUT = "timeout"
    """It did not answer within the time-out of the command."""
