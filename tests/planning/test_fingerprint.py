"""Names by content."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart.planning.fingerprint import plain, trial_name, workload_name
from rollart.scenario.load import load_scenario
from rollart.sched.placement.trial import Trials
from rollart.workload.reshaped import Reshape

ROOT = Path(__file__).resolve().parents[2]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"


@pytest.fixture(scope="module")
def scenario():
    return load_scenario(LAPTOP)


@pytest.fixture(scope="module")
def trial(scenario):
    job = scenario.job()
    return Trials(job=job).of(job.plan, 0)


def test_equal_trials_have_equal_names(trial):
    job = load_scenario(LAPTOP).job()
    again = Trials(job=job).of(job.plan, 0)
    assert trial_name(again, "w") == trial_name(trial, "w")


@pytest.mark.parametrize(
    "change",
    [
        lambda trial: replace(trial, job=replace(trial.job, seed=1)),
        lambda trial: replace(trial, job=replace(trial.job, steps=9)),
        lambda trial: replace(trial, reshape=Reshape(tail_scale=2.0)),
        lambda trial: replace(trial, job=replace(trial.job, training=replace(trial.job.training, batch_size=64))),
    ],
    ids=["seed", "steps", "reshape", "batch"],
)
def test_whatever_matters_changes_the_name(trial, change):
    assert trial_name(change(trial), "w") != trial_name(trial, "w")


def test_the_workload_is_part_of_the_name(trial):
    assert trial_name(trial, "w") != trial_name(trial, "v")


def test_the_bytes_of_a_profile_make_the_workloads_name(tmp_path):
    text = LAPTOP.read_text().replace("traces/laptop.yaml", "mine.yaml")
    (tmp_path / "scenario.yaml").write_text(text)
    profile = (ROOT / "traces/laptop.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(profile)
    first = workload_name(load_scenario(tmp_path / "scenario.yaml"))
    assert workload_name(load_scenario(tmp_path / "scenario.yaml")) == first
    (tmp_path / "mine.yaml").write_text(profile + "\n# another file\n")
    assert workload_name(load_scenario(tmp_path / "scenario.yaml")) != first


def test_sets_and_keys_have_one_order():
    assert plain({frozenset({"b", "a"}): (1, None)}) == {'["\\"a\\"", "\\"b\\""]': [1, None]}
    with pytest.raises(TypeError, match="object has no plain form"):
        plain(object())
