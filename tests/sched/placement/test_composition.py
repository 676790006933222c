"""How presets compose a step, by hand."""

import pytest

from rollart.sched.placement.composition import Composition
from rollart.sched.presets import resolve

PARTS = {"training_s": 60.0, "fetch_s": 50.0, "load_s": 1.0}


def composition(preset, overrides=None):
    return Composition.of(resolve(preset, overrides))


CASES = [
    ("sync", None, 100 + 60 + 51),
    ("sync+", None, 100 + 60 + 51),
    ("one-off", None, 100 + 51),
    ("areal", None, 60 + 51 + (100 - 60) / 2),
    ("rollart", None, 60 + 51),
    ("rollart", {"sync": {"wait_for_fetch": False}}, 100 + 1),
]


@pytest.mark.parametrize(("preset", "overrides", "expected_s"), CASES)
def test_step_of_each_preset(preset, overrides, expected_s):
    assert composition(preset, overrides).step_s(100.0, **PARTS) == expected_s


@pytest.mark.parametrize(("preset", "overrides"), [case[:2] for case in CASES])
def test_the_window_is_what_a_step_leaves_to_its_rollout(preset, overrides):
    made = composition(preset, overrides)
    for rollout_s in (70.0, 100.0, 400.0):
        step_s = made.step_s(rollout_s, **PARTS)
        window_s = made.window_s(step_s, **PARTS)
        assert window_s >= rollout_s - 1e-9
        # Where the rollout decides, the window is exactly as long.
        if made.step_s(rollout_s + 1.0, **PARTS) > step_s:
            assert window_s == pytest.approx(rollout_s)


def test_a_step_that_is_too_short_for_training_leaves_nothing():
    assert composition("rollart").window_s(100.0, **PARTS) == 0.0
    assert composition("rollart").window_s(111.0, **PARTS) == 110.0


def test_what_each_policy_has_under_way():
    assert composition("rollart").redundant_members == 1
    assert composition("sync+").redundant_members == 0
    assert composition("rollart").ahead == 1.0625
    assert composition("rollart").oldest == 1
    assert composition("rollart", {"staleness": {"bound": 3}}).ahead == 3.0625
    # Opened when a version is installed, and due when the next one is: nothing is ahead of what is due.
    assert (composition("areal").ahead, composition("areal").under_way, composition("areal").barrier) == (0, 2.0, True)
    assert composition("areal", {"admission": {"lookahead": 2}}).barrier is False
