"""Turns a decoder's complaint about one line into a message for people."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_AT_PATH = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_EXPECTED = re.compile(r"^Expected `([^`]+)`(?: ([<>]=? \S+))?(?:, got `([^`]+)`)?$")
_UNKNOWN_KEY = re.compile(r"^Object contains unknown field `([^`]+)`$")
_MISSING_KEY = re.compile(r"^Object missing required field `([^`]+)`$")
_CHOICES = {
    "schema": "1",
    "reset_outcome": "ok, failed or timeout",
    "outcome": "ok, failed or truncated (of a turn: ok, failed or timeout)",
    "provenance": "fields that are measured, counted, estimated or drawn",
}
_NUMBER_NAMES = {"int": "an integer", "float": "a finite number", "str": "a text", "object": "an object"}


def explain_line(line: bytes, error: Exception) -> str:
    """What is wrong in `line`, which raised `error` when decoded: key, value, and what would be right."""
    not_finite = _first_not_finite(line)
    if not_finite is not None:
        return not_finite
    if not isinstance(error, msgspec.ValidationError):
        return f"is not JSON ({error}); must be one JSON object"
    return _explain_validation(line, str(error))


def _explain_validation(line: bytes, text: str) -> str:
    found = _AT_PATH.search(text)
    path = found.group(1) if found else ""
    message = text[: found.start()] if found else text
    if unknown := _UNKNOWN_KEY.match(message):
        return f"{_join(path, unknown.group(1))} is not a key of the trace schema"
    if missing := _MISSING_KEY.match(message):
        return f"{_join(path, missing.group(1))} is missing"
    if expected := _EXPECTED.match(message):
        kinds, bound, _ = expected.groups()
        wanted = " or ".join(_NUMBER_NAMES.get(kind, kind) for kind in kinds.split(" | "))
        return f"{path or 'the line'} is {_value_at(line, path)}; must be {wanted}{f' {bound}' if bound else ''}"
    if "enum value" in message:
        return _explain_choice(line, path or "provenance")
    if not path:
        return message
    return f"{path} is {_value_at(line, path)}; {message[:1].lower()}{message[1:]}"


def _explain_choice(line: bytes, path: str) -> str:
    path = path.removesuffix("[...]")
    choices = _CHOICES.get(path.rpartition(".")[2], "another value")
    return f"{path} is {_value_at(line, path)}; must be {choices}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _first_not_finite(line: bytes) -> str | None:
    """JSON has no NaN or infinity, but many writers produce them: name the first one."""
    if b"NaN" not in line and b"Infinity" not in line:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    for path, value in _leaves(document, ""):
        if isinstance(value, float) and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else f"{value:+}"
            return f"{path or 'the line'} is {shown}; must be a finite number >= 0"
    return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, _join(path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _value_at(line: bytes, path: str) -> str:
    """The value at a path such as turns[0].env_s, as short JSON."""
    try:
        value: Any = json.loads(line)
        for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
            value = value[key] if key else value[int(index)]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return "not valid"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
