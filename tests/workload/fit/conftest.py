"""Fixtures of the tests of fitting."""

from pathlib import Path
from typing import Any

import pytest

PUBLIC = Path(__file__).resolve().parents[3] / "../shared/traces"


@pytest.fixture
def public_traces() -> Path:
    """Folder of public traces that are not part of the repository."""
    if not PUBLIC.is_dir():
        pytest.skip("the public traces are not beside this checkout")
    return PUBLIC


@pytest.fixture
def document() -> dict[str, Any]:
    """A profile without failures whose draws go with the number of turns and with the turn."""

    def constant(value: float) -> dict[str, Any]:
        return {"quantiles": {0.5: value}, "source": "test"}

    return {
        "schema": 1,
        "name": "known",
        "tasks": {
            "maze": {
                "turns": {"quantiles": {0: 2, 0.5: 9, 1: 40}, "prompt_share": 0.5, "source": "test"},
                "prompt_tokens": {"quantiles": {0.1: 500, 0.9: 900}, "source": "test"},
                "observation_tokens": {"quantiles": {0.1: 50, 0.9: 400}, "source": "test"},
                "output_tokens": {
                    "quantiles": {0.1: 100, 0.5: 300, 0.9: 900},
                    "tail": {"family": "pareto", "from": 0.9, "parameter": 3.0},
                    "max": 50000,
                    "prompt_share": 0.2,
                    "member_share": 0.3,
                    "turns_correlation": 0.6,
                    "by_turn": {0: 2.0, 10: 1.0},
                    "source": "test",
                },
                "env_s": {"quantiles": {0.1: 0.2, 0.5: 1.0, 0.99: 30.0}, "member_share": 0.4, "source": "test"},
                "reset_s": constant(2.0),
                "reward_s": constant(0.5),
                "reset_failures": {"source": "test"},
                "step_failures": {"source": "test"},
                "success": {"mean": 0.4, "spread": 1.0, "source": "test"},
            }
        },
    }


@pytest.fixture
def profiles() -> Path:
    """Folder of the shipped profiles."""
    return Path(__file__).resolve().parents[3] / "traces"
