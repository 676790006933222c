"""Both sides of a window without regard to kind: commands in order of id, events in order of seq."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rollart.domain.commands import COMMANDS
from rollart.domain.events import EVENTS, Answer
from rollart.runlog.ledger import Array
from rollart.runlog.schema import ABSENT
from rollart.runlog.window import Batch, Floats, Ints, Window

_COMMAND_CODE = {kind: code for code, kind in enumerate(COMMANDS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Commands of a window in order of id; the arrays run in parallel."""

    id: Ints
    seq: Ints
    time_s: Floats
    cause_seq: Ints
    code: Array
    """Index of the type within COMMANDS."""
    trajectory: Ints
    engine: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events of a window in order of seq; the arrays run in parallel."""

    seq: Ints
    time_s: Floats
    command_id: Ints
    """The command that the event answers; ABSENT for a spontaneous one."""
    code: Array
    """Index of the type within EVENTS."""


def commands_of(window: Window) -> Commands:
    """Merge the commands of all kinds."""
    batches = list(window.of(COMMANDS))
    order = _order(batches)
    return Commands(
        id=_merged((batch.ints("id") for batch in batches), order),
        seq=_merged((batch.seq for batch in batches), order),
        time_s=_merged((batch.time_s for batch in batches), order, np.float64),
        cause_seq=_merged((batch.cause_seq for batch in batches), order),
        code=_merged((_constant(batch, _COMMAND_CODE[batch.kind.type]) for batch in batches), order, np.int8),  # type: ignore[index]
        trajectory=_merged((_optional(batch, "trajectory") for batch in batches), order),
        engine=_merged((_optional(batch, "engine") for batch in batches), order),
    )


def events_of(window: Window) -> Events:
    """Merge the events of all kinds."""
    batches = list(window.of(EVENTS))
    order = _order(batches)
    codes = {kind: code for code, kind in enumerate(EVENTS)}
    return Events(
        seq=_merged((batch.seq for batch in batches), order),
        time_s=_merged((batch.time_s for batch in batches), order, np.float64),
        command_id=_merged(
            (
                batch.ints("command_id") if issubclass(batch.kind.type, Answer) else _constant(batch, ABSENT)
                for batch in batches
            ),
            order,
        ),
        code=_merged((_constant(batch, codes[batch.kind.type]) for batch in batches), order, np.int8),  # type: ignore[index]
    )


def _order(batches: list[Batch]) -> Ints:
    # The batches are runs in order of seq, which a stable sort merges fast.
    return np.argsort(_joined(batch.seq for batch in batches), kind="stable")


def _merged(columns: Iterable[Array], order: Ints, dtype: type[np.generic] = np.int64) -> Array:
    return _joined(columns, dtype)[order]


def _joined(columns: Iterable[Array], dtype: type[np.generic] = np.int64) -> Array:
    joined: Array = np.concatenate([np.empty(0, dtype=dtype), *columns]).astype(dtype, copy=False)
    return joined


def _constant(batch: Batch, value: int) -> Array:
    return np.full(len(batch), value, dtype=np.int64)


def _optional(batch: Batch, name: str) -> Array:
    if any(field.name == name for field in batch.kind.fields):
        return batch.ints(name)
    return _constant(batch, ABSENT)
