"""A plan file gives back the placement that it was written from."""

from pathlib import Path

from rollart.scenario.load import load_scenario
from rollart.scenario.plan_file import plan_text

PAPER = Path(__file__).resolve().parents[2] / "experiments/scenarios/paper-128.yaml"


def test_a_plan_file_restores_its_placement(tmp_path):
    placement = load_scenario(PAPER).job().plan.placement
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(placement, "as it was"))
    assert load_scenario(PAPER, plan=path).job().plan.placement == placement
