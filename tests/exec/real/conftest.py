"""What needs the executor's packages is skipped where they are missing."""

import importlib.util

import pytest

collect_ignore = (
    []
    if importlib.util.find_spec("torch")
    else ["test_learner.py", "test_objective.py", "test_checkpoint.py", "test_ranks.py"]
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("real") and not importlib.util.find_spec("ray"):
            item.add_marker(pytest.mark.skip(reason="ray is not installed: make setup-exec"))
