"""RollArt: plan, simulate and run multi-task agentic RL of LLMs on disaggregated, mixed hardware.

`import rollart` is light: the names of `rollart.api` are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a public name of `rollart.api` on first use (PEP 562)."""
    if name.startswith("_"):
        raise AttributeError(name)
    api = import_module("rollart.api")
    try:
        return getattr(api, name)
    except AttributeError:
        raise AttributeError(f"module 'rollart' has no attribute '{name}'") from None
