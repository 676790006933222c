"""Reads a profile from YAML and checks it; a wrong file gives one line that names the key."""

import reprlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rollart.domain.errors import TraceError
from rollart.workload.profile import Profile
from rollart.workload.profile_schema import ProfileKeys

_MAX_FILE_BYTES = 4 << 20
"""A profile is figures typed by people; anything longer is a mistake."""


class _UniqueKeyLoader(yaml.SafeLoader):
    """Plain YAML, which would let the last of two equal keys win, with an error instead."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                place = node.start_mark
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} is given twice", place)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def load_profile(path: Path) -> Profile:
    """Read and check a profile file; TraceError names file, key, value and what would be right."""
    return profile_from_mapping(_read_document(path), str(path))


def load_document(path: Path) -> Mapping[str, Any]:
    """The keys of a profile file, as they stand there, once they were checked as in `load_profile`."""
    document = _read_document(path)
    profile_from_mapping(document, str(path))
    assert isinstance(document, Mapping), "refused above"
    return document


def _read_document(path: Path) -> object:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise TraceError(f"{path}: longer than {_MAX_FILE_BYTES >> 20} MiB; a profile is a short YAML file")
    try:
        return yaml.load(content, Loader=_UniqueKeyLoader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is not YAML: {' '.join(str(error).split())[:200]}") from error


def profile_from_mapping(document: object, place: str) -> Profile:
    """Check a profile given as plain mappings; `place` begins the message of a TraceError."""
    if not isinstance(document, Mapping):
        raise TraceError(f"{place}: holds {type(document).__name__}; a profile is a mapping with schema, name, tasks")
    try:
        keys = ProfileKeys.model_validate(document)
    except ValidationError as error:
        raise TraceError(f"{place}: {_first_line(error)}") from error
    return keys.profile()


def _first_line(error: ValidationError) -> str:
    details = error.errors(include_url=False)
    first = details[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]") or "the file"
    value = _shown(first["input"])
    message = first["msg"].removeprefix("Value error, ")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if first["type"] == "value_error":
        return f"{key}: {message}{more}"
    if first["type"] == "missing":
        return f"{key} is missing{more}"
    if first["type"] == "extra_forbidden":
        return f"{key} is not a key of a profile{more}"
    return f"{key} is {value}; {message[:1].lower()}{message[1:]}{more}"


def _shown(value: object) -> str:
    # reprlib, since YAML aliases make small files that are huge, or endless, when written out.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
