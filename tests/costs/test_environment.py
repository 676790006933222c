import pytest

from rollart.costs.environment import contention_stretch, image_pull_s, reset_s, step_s


def test_free_cores_do_not_speed_a_step_up():
    assert contention_stretch(3.0, 8.0) == 1.0
    assert step_s(2.0, 3.0, 8.0) == 2.0


def test_contended_cores_stretch_in_proportion():
    assert step_s(2.0, 24.0, 8.0) == 6.0


def test_image_pulls_share_the_registry():
    assert image_pull_s(5e9, 1e9) == 5.0
    assert image_pull_s(5e9, 1e9, pulls=16) == 80.0


def test_a_reset_pulls_its_image_and_then_starts():
    assert reset_s(3.0, 16.0, 8.0) == 6.0
    assert reset_s(3.0, 4.0, 8.0, image_bytes=5e9, registry_bytes_per_s=1e9, pulls=2) == pytest.approx(13.0)
