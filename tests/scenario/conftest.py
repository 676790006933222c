"""A small scenario as a raw mapping, and a way to load it from a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollart.scenario.load import load_scenario
from rollart.scenario.scenario import Scenario


def small_scenario() -> dict[str, Any]:
    return {
        "name": "small",
        "model": "Qwen3-8B",
        "cluster": {
            "pools": {"h800": {"device": "H800", "count": 16}, "h20": {"device": "H20", "count": 8}},
            "links": [{"between": ["h800", "h20"], "bandwidth_gbit_per_s": 100.0}],
            "environments": {"hosts": 2, "cores_per_host": 64},
        },
        "tasks": [
            {"name": "math", "workload": {"profile": "traces/paper-five-tasks.yaml", "task": "GEM-math"}},
            {"name": "WebShop", "workload": {"profile": "traces/paper-five-tasks.yaml"}},
        ],
        "training": {"batch_size": 64, "context_limit": 16384},
        "placement": {
            "trainer": {"pool": "h800", "devices": 8, "tensor_parallel": 4},
            "engines": [
                {"name": "fast", "pool": "h800", "engines": 4, "tensor_parallel": 2},
                {"name": "cheap", "pool": "h20", "engines": 8},
            ],
            "affinity": {"math": ["cheap"], "default": ["fast", "cheap"]},
        },
    }


@pytest.fixture
def raw() -> dict[str, Any]:
    return small_scenario()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Scenario]:
    """Load a raw mapping as the file `small.yaml`."""

    def load_raw(value: dict[str, Any], *overrides: str) -> Scenario:
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump(value, sort_keys=False))
        return load_scenario(path, overrides)

    return load_raw
