"""The kinds of records and the columns that hold them.

One union schema serves all kinds: a field has one column by its name whatever the kind, a list field the column
`<name>_list`, and a column that a kind lacks is null. Fields of one name must therefore agree in form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from rollart.domain.commands import COMMANDS
from rollart.domain.events import EVENTS
from rollart.runlog.samples import SAMPLES

Record = msgspec.Struct
"""An event, a command or a sample."""

ABSENT = -1
"""Stands for None in integer arrays; every optional integer of the protocol is >= 0."""


class Side(StrEnum):
    """Who said it."""

    EVENT = "event"
    COMMAND = "command"
    SAMPLE = "sample"


class Form(Enum):
    """How a field lies in a column."""

    INT = "int64"
    OPTIONAL_INT = "int64 or null"
    FLOAT = "float64"
    FLAG = "bool"
    TEXT = "string"
    INT_LIST = "list of int64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a record."""

    name: str
    form: Form
    enum: type[StrEnum] | None = None
    """Type to restore where the text is a member of an enum."""

    @property
    def column(self) -> str:
        """Name of its column."""
        return f"{self.name}_list" if self.form is Form.INT_LIST else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One type of record."""

    type: type[Record]
    side: Side
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """As in the column `kind`."""
        return self.type.__name__

    def field(self, name: str) -> Field:
        """The field `name`; KeyError if the kind has none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name}")


def _field(name: str, hint: Any) -> Field:
    if get_origin(hint) is UnionType and set(get_args(hint)) == {int, type(None)}:
        return Field(name=name, form=Form.OPTIONAL_INT)
    if hint == tuple[int, ...]:
        return Field(name=name, form=Form.INT_LIST)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Field(name=name, form=Form.TEXT, enum=hint)
    return Field(name=name, form={int: Form.INT, float: Form.FLOAT, bool: Form.FLAG, str: Form.TEXT}[hint])


def _kind(record: type[Record], side: Side) -> Kind:
    hints = get_type_hints(record)
    fields = tuple(_field(name, hints[name]) for name in record.__struct_fields__)
    return Kind(type=record, side=side, fields=fields)


def _kinds() -> Iterator[Kind]:
    for side, types in ((Side.EVENT, EVENTS), (Side.COMMAND, COMMANDS), (Side.SAMPLE, SAMPLES)):
        for record in types:
            yield _kind(record, side)


KINDS: tuple[Kind, ...] = tuple(_kinds())
"""Every kind; the order is that of rows within a window of the file."""

KIND_OF: dict[type[Record], Kind] = {kind.type: kind for kind in KINDS}
KIND_NAMED: dict[str, Kind] = {kind.name: kind for kind in KINDS}


def union_columns() -> dict[str, Form]:
    """Columns of all fields of all kinds, in order of first appearance."""
    columns: dict[str, Form] = {}
    for kind in KINDS:
        for field in kind.fields:
            form = Form.INT if field.form is Form.OPTIONAL_INT else field.form
            assert columns.setdefault(field.column, form) is form, f"two forms of column {field.column}"
    return columns
