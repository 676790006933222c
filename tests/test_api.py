"""What a Python user has."""

import shutil
from pathlib import Path

import pytest

import rollart
from rollart import api
from rollart.domain.errors import RunLogError, ScenarioError
from rollart.runlog.writer import FILE_NAME

CHECKOUT = Path(__file__).resolve().parents[1]
LAPTOP = CHECKOUT / "experiments/scenarios/laptop.yaml"
SMALL = ["training.batch_size=32", "steps=2", "warmup_steps=0"]


@pytest.fixture(scope="module")
def scenario():
    return rollart.load_scenario(LAPTOP, SMALL)


@pytest.fixture(scope="module")
def folder(scenario, tmp_path_factory):
    """The run directory of a small run."""
    path = tmp_path_factory.mktemp("api") / "run"
    rollart.simulate(scenario, out=path)
    return path


def test_the_public_names_are_these():
    assert sorted(api.__all__) == [
        "CalibrationReport",
        "CheckReport",
        "FakeTime",
        "PlanOptions",
        "PlanReport",
        "Run",
        "Scenario",
        "SensitivityTable",
        "bench",
        "calibrate",
        "check",
        "compare",
        "load_scenario",
        "plan",
        "run",
        "simulate",
    ]


@pytest.mark.parametrize("name", api.__all__)
def test_the_package_has_every_public_name(name):
    assert getattr(rollart, name) is getattr(api, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'rollart' has no attribute 'simulat'"):
        _ = rollart.simulat


def test_a_run_without_a_folder_has_its_summary(scenario):
    told = []
    run = rollart.simulate(scenario, progress=lambda *done: told.append(done))
    assert run.folder is None
    assert told == [(1, 2), (2, 2)]
    assert run.summary["steps"] == 2
    assert run.summary["policy"] == "rollart"
    assert run.summary["trajectories"]["trained"] == 64
    assert [step.trajectories for step in run.statistics.steps] == [32, 32]
    assert run.summary["simulator"]["turns"] == run.statistics.turns


def test_a_scenario_may_be_a_path():
    with pytest.raises(ScenarioError, match=r"missing\.yaml"):
        rollart.simulate(CHECKOUT / "missing.yaml")


def test_a_run_directory_holds_everything(folder):
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names >= {FILE_NAME, "summary.json", "steps.csv", "timeline.json"}
    assert {name for name in names if name.startswith("figures/")} >= {
        "figures/steps.png",
        "figures/utilization.png",
        "figures/staleness.png",
        "figures/trajectories.png",
    }


def test_without_a_log_there_is_no_timeline(scenario, tmp_path):
    rollart.simulate(scenario, out=tmp_path / "run", log=False)
    names = {path.name for path in (tmp_path / "run").rglob("*")}
    assert not names & {FILE_NAME, "timeline.json", "trajectories.png"}
    assert "summary.json" in names


def test_a_run_directory_passes_its_check(folder):
    report = rollart.check(folder)
    assert report.ok
    assert report.invariants.violation is None
    assert report.replay.difference is None
    assert report.replay.events == report.invariants.events
    assert report.as_dict()["ok"] is True
    assert report.lines()[0].startswith("invariants: hold (")
    assert rollart.check(folder / FILE_NAME) == report


def test_a_check_needs_a_log(tmp_path, folder):
    with pytest.raises(RunLogError, match="no run log"):
        rollart.check(tmp_path)
    shutil.copy(folder / FILE_NAME, tmp_path / FILE_NAME)
    damaged = (tmp_path / FILE_NAME).read_bytes()[:-100]
    (tmp_path / FILE_NAME).write_bytes(damaged)
    with pytest.raises(RunLogError, match="truncated or damaged"):
        rollart.check(tmp_path)


def test_a_comparison_runs_every_policy_with_every_seed(scenario):
    runs = rollart.compare(scenario, ["sync", "areal"], seeds=2)
    assert [(run.summary["policy"], run.summary["seed"]) for run in runs] == [
        ("sync", 0),
        ("sync", 1),
        ("areal", 0),
        ("areal", 1),
    ]
    assert runs[0].summary["staleness"]["max"] == 0


def test_the_code_version_begins_with_the_package_version():
    assert api.code_version().startswith(rollart.__version__)
