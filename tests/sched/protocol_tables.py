"""The tables of docs/control-plane.md, out of the docstrings; `python -m tests.sched.protocol_tables` writes them.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from rollart.domain.commands import COMMANDS
from rollart.domain.events import EVENTS
from rollart.runlog.answers import ANSWERS
from rollart.sched import PRESETS
from rollart.sched.parts import SLOTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control-plane.md"
_BLOCK = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _meaning(kind: type) -> str:
    return " ".join(inspect.getdoc(kind).split())  # type: ignore[union-attr]


def _fields(kind: type[msgspec.Struct], hidden: str) -> str:
    return _names(name for name in kind.__struct_fields__ if name != hidden)


def events() -> str:
    """Every event, what it answers and what it carries beside `command_id`."""
    asked: dict[type, list[str]] = {}
    for command, answers in ANSWERS.items():
        for answer in answers:
            asked.setdefault(answer, []).append(command.__name__)
    rows = (
        (kind.__name__, _names(asked.get(kind, ())), _fields(kind, "command_id"), _meaning(kind)) for kind in EVENTS
    )
    return _table(("event", "answers", "carries", "meaning"), rows)


def commands() -> str:
    """Every command and what it carries beside `id`."""
    return _table(
        ("command", "carries", "meaning"),
        ((kind.__name__, _fields(kind, "id"), _meaning(kind)) for kind in COMMANDS),
    )


def parts() -> str:
    """Every rule of every slot, with its parameters and their defaults."""
    rows = []
    for slot, kinds in SLOTS.items():
        for name, rule in kinds.items():
            defaults = (f"{field.name}={field.default!r}" for field in dataclasses.fields(rule))
            rows.append((slot, f"`{name}`", _names(defaults), _meaning(rule)))
    return _table(("slot", "kind", "parameters", "rule"), rows)


def presets() -> str:
    """The parts of every preset."""
    rows = []
    for slot in SLOTS:
        cells = []
        for chosen in PRESETS.values():
            part = dict(chosen[slot])
            cells.append(", ".join([f"`{part.pop('kind')}`", *(f"{key} {value}" for key, value in part.items())]))
        rows.append((slot, *cells))
    return _table(("slot", *PRESETS), rows)


TABLES: dict[str, Callable[[], str]] = {"events": events, "commands": commands, "parts": parts, "presets": presets}


def with_tables(page: str) -> str:
    """The page with every table made anew."""
    return _BLOCK.sub(lambda block: f"<!-- table: {block[1]} -->\n{TABLES[block[1]]()}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
