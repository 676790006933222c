"""How presets compose a step, by hand."""

import pytest

from rollart.sched.placement.composition import Composition
from rollart.sched.presets import resolve


def step_s(preset, overrides=None):
    composition = Composition.of(resolve(preset, overrides), group_size=8)
    return composition.step_s(rollout_s=100.0, training_s=60.0, fetch_s=50.0, load_s=1.0)


@pytest.mark.parametrize(
    ("preset", "overrides", "expected_s"),
    [
        ("sync", None, 100 + 60 + 51),
        ("sync+", None, 100 + 60 + 51),
        ("one-off", None, 100 + 51),
        ("areal", None, 100 + 51),
        ("rollart", None, 60 + 51),
        ("rollart", {"sync": {"wait_for_fetch": False}}, 100 + 1),
    ],
)
def test_step_of_each_preset(preset, overrides, expected_s):
    assert step_s(preset, overrides) == expected_s


def test_redundant_members_are_started_too():
    assert Composition.of(resolve("rollart"), group_size=8).started_per_trained == 9 / 8
    assert Composition.of(resolve("sync+"), group_size=8).started_per_trained == 1
