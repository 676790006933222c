"""A calibration finds the factors that a run on slower machines had, and says where it can't."""

from pathlib import Path

import pytest

from rollart import api
from rollart.domain.errors import InputError, RunLogError

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"
STEPS = "steps=10"


@pytest.fixture(scope="module")
def slow_run(tmp_path_factory):
    """The folder of a run whose engines and trainer took several times what the scenario's costs say."""
    folder = tmp_path_factory.mktemp("calibration") / "run"
    factors = "calibration={engines: {turns: 6, answers: 4}, trainer: 9, weights: {pull_s: 0.05, update_s: 0.02}}"
    api.run(api.load_scenario(LAPTOP, [STEPS, factors]), out=folder, fake=api.FakeTime(speed=None))
    return folder


def test_the_factors_of_a_run_are_found(slow_run):
    report = api.calibrate(slow_run, api.load_scenario(LAPTOP, [STEPS]))
    assert report.converged
    assert report.calibration.engines == pytest.approx({"turns": 6.0, "answers": 4.0}, rel=0.15)
    assert report.calibration.trainer == pytest.approx(9.0, rel=0.05)
    weights = report.calibration.weights
    assert (weights.push_s, weights.pull_s, weights.update_s) == pytest.approx((0.0, 0.05, 0.02), abs=0.005)
    assert report.after.step_s == pytest.approx(report.measured.step_s, rel=0.1)
    assert report.before.step_s < 0.5 * report.measured.step_s


def test_factors_that_the_scenario_has_already_are_found_anew_not_on_top(slow_run):
    report = api.calibrate(slow_run, api.load_scenario(LAPTOP, [STEPS, "calibration.trainer=100"]))
    assert report.calibration.trainer == pytest.approx(9.0, rel=0.05)


def test_a_run_of_another_plan_is_refused(slow_run):
    other = api.load_scenario(LAPTOP, ["cluster.pools.turns.count=2", "placement.engines.turns.engines=2"])
    with pytest.raises(InputError, match=r"the run had 1 engines on turns .* has 2 engines on turns .* --plan"):
        api.calibrate(slow_run, other)


def test_a_simulation_is_no_run(tmp_path):
    scenario = api.load_scenario(LAPTOP, ["steps=3"])
    api.simulate(scenario, out=tmp_path / "run")
    with pytest.raises(InputError, match="the run is a simulation"):
        api.calibrate(tmp_path / "run", scenario)


def test_a_folder_without_a_log_is_an_error(tmp_path):
    with pytest.raises(RunLogError, match="no run log"):
        api.calibrate(tmp_path, LAPTOP)
