"""Plans with fewer groups."""

from dataclasses import replace
from pathlib import Path

from rollart.scenario.load import load_scenario
from rollart.sched.placement.simplified import simplified

PAPER = Path(__file__).resolve().parents[3] / "experiments/scenarios/paper-128.yaml"


def test_equal_engines_become_one_group_and_shares_go():
    plan = load_scenario(PAPER).job().plan
    h800, h20 = plan.placement.engine_groups
    groups = (replace(h800, name="a", engines=3), replace(h800, name="b", engines=5), h20)
    affinity = {"SWE-bench": ("b", "a"), "WebShop": ("b", "h20"), "default": ("h20",)}
    cut = replace(plan.placement, engine_groups=groups, affinity=affinity, shares={"SWE-bench": {"a": 0.3, "b": 0.7}})
    found = simplified(replace(plan, placement=cut)).placement
    assert found.engine_groups == (replace(h800, name="a", engines=8), h20)
    assert found.affinity == {"SWE-bench": ("a",), "WebShop": ("a", "h20"), "default": ("h20",)}
    assert found.shares == {}
    assert simplified(replace(plan, placement=found)) is None


def test_different_engines_stay_apart():
    plan = load_scenario(PAPER).job().plan
    h800, h20 = plan.placement.engine_groups
    groups = (h800, replace(h800, name="small", tensor_parallel=2), h20)
    assert simplified(replace(plan, placement=replace(plan.placement, engine_groups=groups))) is None
