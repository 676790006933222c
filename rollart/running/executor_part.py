"""The executor's packages, which a light set-up lacks: what needs them adds them, where that is ours to do."""

import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

from rollart.domain.errors import InputError

STAMP = ".core"
"""In an environment that the Makefile of a checkout has made, which may then add to it."""


def executor_module(name: str, *, environment: Path | None = None) -> ModuleType:
    """A module of `rollart.exec.real`; in a checkout's own environment its Makefile first adds what is missing.

    `environment`: the folder of the Python environment; None: this one. Raises InputError where packages are missing.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
    checkout = _checkout(Path(sys.prefix) if environment is None else environment)
    if checkout is None:
        raise InputError(
            f"run: {missing} is not installed; `make setup-exec` does it for CPUs, "
            '`pip install "rollart[exec]"` for GPUs; --fake needs neither'
        )
    print(f"{missing} is not installed yet: make setup-exec adds the executor's packages, once", file=sys.stderr)
    added = subprocess.run(["make", "-C", str(checkout), "setup-exec"], stdout=sys.stderr, check=False)
    if added.returncode != 0:
        raise InputError(f"run: make setup-exec failed in {checkout}; see what it says above")
    invalidate_caches()
    return import_module(name)


def _checkout(environment: Path) -> Path | None:
    """The checkout whose Makefile made an environment."""
    made = (environment / STAMP).is_file() and (environment.parent / "Makefile").is_file()
    return environment.parent if made else None
