"""Environments by name, and users' own by import path."""

import importlib
from collections.abc import Mapping
from typing import Any, cast

from rollart.domain.errors import ScenarioError
from rollart.exec.real.environments.protocol import Environment

PACKAGE = "rollart.exec.real.environments"
SHIPPED = {
    "delayed": f"{PACKAGE}.delayed:Delayed",
    "discrete": f"{PACKAGE}.frozenlake:Discrete",
    "frozenlake": f"{PACKAGE}.frozenlake:FrozenLake",
    "counting": f"{PACKAGE}.counting:Counting",
    "reasoning": f"{PACKAGE}.reasoning:Reasoning",
    "textgame": f"{PACKAGE}.textgame:TextGame",
    "sandbox": f"{PACKAGE}.sandbox:Sandbox",
    "remote": f"{PACKAGE}.remote:Remote",
}
"""Name -> import path."""


def make_environment(name: str, arguments: Mapping[str, Any]) -> Environment:
    """An environment; ScenarioError when there is none of that name, or it does not take the arguments."""
    path = SHIPPED.get(name, name)
    module_name, _, class_name = path.partition(":")
    if not class_name:
        raise ScenarioError(f"environment {name!r} is unknown; known: {', '.join(SHIPPED)}, or package.module:Class")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ScenarioError(f"environment {name!r} cannot be imported: {error}") from error
    try:
        made = found(**arguments)
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise ScenarioError(f"environment {name!r} does not start with {dict(arguments)}: {text}") from error
    missing = [method for method in ("reset", "step", "close") if not callable(getattr(made, method, None))]
    if missing:
        raise ScenarioError(f"environment {name!r} lacks {', '.join(missing)}; must have reset, step and close")
    return cast(Environment, made)
