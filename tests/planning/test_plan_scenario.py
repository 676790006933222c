"""Planning the laptop from end to end."""

import json
from pathlib import Path

import pytest

from rollart.planning.plan_scenario import PlanOptions, SensitivityTable, plan_scenario
from rollart.scenario.load import load_scenario

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"


@pytest.fixture(scope="module")
def scenario():
    return load_scenario(LAPTOP, ["training.batch_size=16", "calibration={}"])


def options(tmp_path, **changes):
    return PlanOptions(workers=1, counted_steps=2, memory=tmp_path / "m.sqlite", **changes)


def test_the_winner_comes_with_proof_and_verdict(scenario, tmp_path):
    report = plan_scenario(scenario, options(tmp_path, top=2, repetitions=2))
    shown = report.as_dict()
    assert {
        "status",
        "objective",
        "predicted",
        "bound",
        "gap",
        "floor",
        "simulated",
        "wall_s",
        "plan",
        "alternatives",
    } <= shown.keys()
    assert shown["gap"] <= 0.01
    assert shown["simulated"].keys() == {"mean", "p50", "p90"}
    assert len(shown["alternatives"]) == len(report.solved.candidates) - 1
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["judged"]["simulated"] == report.verdict.simulations


def test_planning_again_simulates_nothing(scenario, tmp_path):
    first = plan_scenario(scenario, options(tmp_path, top=2, repetitions=2))
    again = plan_scenario(scenario, options(tmp_path, top=2, repetitions=2))
    assert again.simulated == 0
    assert again.remembered == first.simulated
    assert again.best.plan == first.best.plan


def test_the_model_may_decide_alone(scenario, tmp_path):
    report = plan_scenario(scenario, options(tmp_path, repetitions=0))
    assert report.verdict is None
    assert report.as_dict()["simulated"] is None
    assert not (tmp_path / "m.sqlite").exists()
    assert report.best == report.solved.best


def test_other_worlds_are_solved_within_the_model(scenario, tmp_path):
    report = plan_scenario(scenario, options(tmp_path, repetitions=0, sensitivity=SensitivityTable.MODEL))
    effects = {effect["variation"]: effect for effect in report.as_dict()["sensitivity"]["effects"]}
    more = [effect for name, effect in effects.items() if name.startswith("one more node")]
    assert len(more) == len(scenario.job().cluster.pools)
    assert all(effect["predicted"] <= report.solved.best.value * 1.001 for effect in more)
    assert all(effect["kept"] is None for effect in effects.values())


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(scenario, tmp_path):
    one = plan_scenario(scenario, PlanOptions(workers=1, counted_steps=2, top=2, memory=tmp_path / "one.sqlite"))
    two = plan_scenario(scenario, PlanOptions(workers=2, counted_steps=2, top=2, memory=tmp_path / "two.sqlite"))
    assert one.best.plan == two.best.plan
    assert one.verdict == two.verdict
