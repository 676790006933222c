"""Fixtures of the workload tests."""

from pathlib import Path
from typing import Any

import pytest

from rollart.workload.profile import Profile
from rollart.workload.profile_file import profile_from_mapping

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def profiles_folder() -> Path:
    """Folder of the shipped profiles."""
    return CHECKOUT / "traces"


@pytest.fixture
def public_traces() -> Path:
    """Folder of public traces that are not part of the repository."""
    folder = CHECKOUT / "../shared/traces"
    if not folder.is_dir():
        pytest.skip("the public traces are not beside this checkout")
    return folder


def constant(value: float) -> dict[str, Any]:
    """Keys of a figure with one value."""
    return {"quantiles": {0.5: value}, "source": "test"}


@pytest.fixture
def document() -> dict[str, Any]:
    """A valid profile with one task, to be changed by a test."""
    return {
        "schema": 1,
        "name": "small",
        "tasks": {
            "maze": {
                "turns": {"quantiles": {0: 1, 0.5: 6, 1: 30}, "prompt_share": 0.3, "source": "test"},
                "prompt_tokens": {"quantiles": {0.1: 50, 0.9: 90}, "source": "test"},
                "observation_tokens": {"quantiles": {0.1: 5, 0.9: 40}, "source": "test"},
                "output_tokens": {
                    "quantiles": {0.1: 20, 0.5: 60, 0.99: 500},
                    "prompt_share": 0.2,
                    "member_share": 0.2,
                    "source": "test",
                },
                "env_s": {
                    "quantiles": {0.5: 0.1, 0.9: 1.0},
                    "tail": {"family": "pareto", "from": 0.9, "parameter": 2.5},
                    "max": 60.0,
                    "guess": True,
                },
                "reset_s": constant(2.0),
                "reward_s": constant(0.5),
                "reset_failures": {"failed": 0.02, "timeout": 0.01, "timeout_s": 30.0, "source": "test"},
                "step_failures": {"failed": 0.01, "timeout": 0.005, "timeout_s": 20.0, "source": "test"},
                "success": {"mean": 0.4, "spread": 1.0, "source": "test"},
            }
        },
    }


@pytest.fixture
def profile(document: dict[str, Any]) -> Profile:
    """The profile of `document`."""
    return profile_from_mapping(document, "small.yaml")
