"""Names of simulations by content: equal names mean that the outcome is the same, whoever asks and when.

A name covers the job with its plan, seed and steps, the workload's section of the scenario with the bytes of every file
that it reads, the reshape, and the source text of all code that a simulation runs.
"""

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import rollart
from rollart.scenario.scenario import Scenario
from rollart.sched.placement.trial import Trial

_SIMULATED = ("catalog", "costs", "domain", "modelled", "runlog", "sched", "serving", "sim", "workload")
"""Packages that an outcome depends on; of `sched` all but the planner."""
_SOURCES = (".py", ".yaml")
_WORKLOADS = "scenario/workloads.py"
"""The one module beside them that takes part: it puts workloads together."""


def trial_name(trial: Trial, workload: str) -> str:
    """Name of a trial, given the name of its workload."""
    content = {"trial": plain(trial), "workload": workload, "code": code_name()}
    return _digest(json.dumps(content, sort_keys=True).encode())


def workload_name(scenario: Scenario) -> str:
    """Name of a scenario's workload: what its tasks say, and the files that they name."""
    files = [_file_digest(path) for path in scenario.workload_files()]
    tasks = [task.model_dump(mode="json") for task in scenario.document.tasks]
    content = {"tasks": tasks, "files": files, "limit": scenario.document.training.context_limit}
    return _digest(json.dumps(content, sort_keys=True).encode())


@cache
def code_name() -> str:
    """Name of the code that simulates, from its source text."""
    root = Path(rollart.__file__).parent
    found = hashlib.sha256()
    sources = [path for package in _SIMULATED for path in (root / package).rglob("*") if path.suffix in _SOURCES]
    for path in sorted([*sources, root / _WORKLOADS]):
        if "placement" not in path.parts:
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def plain(value: Any) -> Any:
    """The same as JSON can hold it, equal for equal values; sets are sorted, keys become text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {json.dumps(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(json.dumps(plain(each)) for each in value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no plain form")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
