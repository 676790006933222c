"""Turns what is wrong in a file into a few plain lines: the place, the value, and what would be right."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rollart.domain.errors import ScenarioError
from rollart.scenario.requirement import Node, node_at, requirement

MOST_LINES = 5
"""Problems that a message lists."""

Form = TypeVar("Form", bound=BaseModel)
Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong."""

    place: str
    """Path of the key as `--set` writes it."""
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def scenario_error(file: str, problems: Iterable[Problem]) -> ScenarioError:
    """An error that lists at most MOST_LINES problems, each on a line that starts with the file."""
    listed = list(problems)
    lines = [f"{file}: {problem}" for problem in listed[:MOST_LINES]]
    if len(listed) > MOST_LINES:
        lines.append(f"... and {len(listed) - MOST_LINES} more")
    return ScenarioError("\n".join(lines))


def check_form(form: type[Form], raw: dict[str, Any], file: str) -> Form:
    """Validate a raw mapping against a form; ScenarioError if it does not fit."""
    try:
        return form.model_validate(raw)
    except ValidationError as error:
        found = (_problem(form, raw, detail) for detail in error.errors(include_url=False))
        raise scenario_error(file, {str(problem): problem for problem in found}.values()) from error


def shown(value: object) -> str:
    """A value as a message quotes it; long ones are cut."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return f"a number of {len(str(abs(value)))} digits"
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = {"True": "true", "False": "false", "None": "null"}.get(repr(value), repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(key: str, known: Sequence[str]) -> str:
    """A hint at known names for one that is not known."""
    near = difflib.get_close_matches(key, known, n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known)}" if known else "nothing is known here"


def path_text(raw: Any, location: Location) -> str:
    """A location as a dotted path; an entry of a list that has a name goes by it."""
    parts: list[str] = []
    for part in location:
        parts.append(_part_text(raw, part))
        raw = _child(raw, part)
    return ".".join(parts)


@cache
def form_schema(form: type[BaseModel]) -> Node:
    """JSON schema of a form."""
    return form.model_json_schema()


def _problem(form: type[BaseModel], raw: dict[str, Any], detail: Any) -> Problem:
    location: Location = tuple(part for part in detail["loc"] if part != "[key]")
    place = path_text(raw, location)
    schema = form_schema(form)
    kind = detail["type"]
    if kind == "extra_forbidden":
        parent = node_at(schema, location[:-1]) or {}
        hint = nearest(str(location[-1]), list(parent.get("properties", {})))
        return Problem(place=place, text=f"unknown key; {hint}")
    if kind == "value_error":
        return Problem(place=place, text=str(detail["ctx"]["error"]))
    node = node_at(schema, location)
    right = requirement(node, str(location[-1]) if location else "") if node else str(detail["msg"])
    if kind == "missing":
        return Problem(place=place, text=f"is missing; must be {right}")
    return Problem(place=place, text=_wrong_value(detail, right))


def _wrong_value(detail: Any, right: str) -> str:
    value = detail["input"]
    bounds = detail.get("ctx") or {}
    if detail["type"] == "less_than_equal" and "<=" not in right:
        right += f" and <= {bounds['le']:g}"
    if detail["type"] == "too_short":
        return f"has {bounds['actual_length']} entries; must have at least {bounds['min_length']}"
    if detail["type"] == "too_long":
        return f"has more than {bounds['max_length']} entries"
    if detail["type"] == "string_too_long":
        right += f" of at most {bounds['max_length']} characters"
    if isinstance(value, str) and "number" in right:
        right += ", written without quotes or a unit"
    return f"{shown(value)} is not allowed; must be {right}"


def _part_text(raw: Any, part: str | int) -> str:
    if isinstance(part, int):
        entry = _child(raw, part)
        name = entry.get("name") if isinstance(entry, dict) else None
        return name if isinstance(name, str) and name and "." not in name and len(name) <= 64 else str(part)
    return part if len(part) <= 64 else part[:61] + "..."


def _child(raw: Any, part: str | int) -> Any:
    try:
        return raw[part]
    except (KeyError, IndexError, TypeError):
        return None
