"""A plan file gives back the placement that it was written from."""

from pathlib import Path

from rollart.scenario.load import load_scenario
from rollart.scenario.plan_file import plan_text
from rollart.sched.presets import resolve

PAPER = Path(__file__).resolve().parents[2] / "experiments/scenarios/paper-128.yaml"


def test_a_plan_file_restores_its_placement(tmp_path):
    placement = load_scenario(PAPER).job().plan.placement
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(placement, "as it was"))
    assert load_scenario(PAPER, plan=path).job().plan.placement == placement


def test_a_plan_file_restores_a_policy_that_was_chosen(tmp_path):
    plan = load_scenario(PAPER).job().plan
    chosen = resolve("rollart", {"staleness": {"bound": 3}, "group": {"redundant_members": 2}})
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(plan.placement, "with a policy", policy=chosen))
    assert load_scenario(PAPER, plan=path).job().plan.policy == chosen
