"""Changes single values of a scenario before it is checked.

For instance `cluster.pools.h800.count=64`, or `tasks.SWE-bench.share=0.5`.
"""

from collections.abc import Sequence
from typing import Any

from rollart.domain.errors import ScenarioError
from rollart.scenario.problems import nearest, shown
from rollart.scenario.sections.plan import expand_policy
from rollart.scenario.yaml_file import parse

MOST_PARTS = 20
"""Far deeper than the form; an inline model configuration may add a few."""


def apply_overrides(raw: dict[str, Any], settings: Sequence[str]) -> None:
    """Carry out `KEY=VALUE` settings in their order; VALUE is read as YAML.

    A key that the file leaves out is added, so that the check of the whole file judges it. Raises ScenarioError
    for a setting that has no `=`, leads through a plain value, or names a missing list entry.
    """
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path.strip():
            raise ScenarioError(f"--set {shown(setting)}: must be KEY=VALUE, for instance training.batch_size=256")
        parts = path.strip().split(".")
        if len(parts) > MOST_PARTS or not all(parts):
            raise ScenarioError(f"--set {shown(path)}: must be keys with single dots between them")
        _set(raw, parts, parse(text, f"--set {path}"), path)


def _set(raw: dict[str, Any], parts: Sequence[str], value: Any, path: str) -> None:
    here: Any = raw
    for depth, part in enumerate(parts[:-1]):
        if isinstance(here, dict):
            if here is raw and part == "policy":
                here[part] = expand_policy(here.get(part))
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
        else:
            here = here[_entry(here, part, path)]
        if not isinstance(here, dict | list):
            through = ".".join(parts[: depth + 1])
            raise ScenarioError(f"--set {path}: {through} is {shown(here)}, which has no keys")
    last = parts[-1]
    if isinstance(here, dict):
        here[last] = value
    else:
        here[_entry(here, last, path)] = value


def _entry(entries: list[Any], part: str, path: str) -> int:
    """Index of a list entry given by its number or its name."""
    names = [str(entry.get("name")) if isinstance(entry, dict) else "" for entry in entries]
    if part in names:
        return names.index(part)
    if part.isdecimal() and len(part) < 7 and int(part) < len(entries):
        return int(part)
    known = [name for name in names if name]
    hint = nearest(part, known) if known else f"must be a number from 0 to {len(entries) - 1}"
    raise ScenarioError(f"--set {path}: there is no entry {part!r}; {hint}")
