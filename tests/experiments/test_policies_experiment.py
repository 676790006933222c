from pathlib import Path
from typing import Any

import pytest

from experiments.policies import CASES, FIGURES, POLICIES, SCENARIOS, draw_ratios, figure_rows, table_lines
from rollart.scenario.load import load_scenario


def summary(step_s: float, tokens_per_s: float, still_s: float = 0.0) -> dict[str, Any]:
    return {
        "step_time_s": {"mean": step_s},
        "throughput": {"tokens_per_s": tokens_per_s},
        "busy_s": {"weight_sync_exposed": still_s},
    }


def runs_of(rollart_s: float) -> dict[str, dict[str, Any]]:
    runs = {case.name: summary(100.0, 10.0) for case in CASES}
    return runs | {
        "sync": summary(400.0, 5.0),
        "sync+": summary(200.0, 10.0),
        "rollart": summary(rollart_s, 20.0, still_s=3.0),
        "alpha 3": summary(80.0, 20.0),
        "208 H20": summary(150.0, 20.0),
    }


def test_figures_are_ratios_by_seed() -> None:
    rows = {row["figure"]: row for row in figure_rows({0: runs_of(100.0), 1: runs_of(80.0)})}
    assert rows["step time, sync+ / rollart"] == {
        "figure": "step time, sync+ / rollart",
        "paper": [2.05, 2.05],
        "standing": "given",
        "mean": 2.25,
        "lowest": 2.0,
        "highest": 2.5,
    }
    assert rows["throughput, rollart / sync"]["mean"] == 4.0
    assert rows["step time, alpha 1 / best of 1 to 6"]["highest"] == 1.25
    assert rows["step time, alpha 1 / best of 1 to 6"]["lowest"] == 1.0
    assert rows["step time, 208 H20 / 64 H800 + 24 H20"]["mean"] == 1.5
    assert rows["exposed pull of weights, s"]["mean"] == 3.0


def test_the_table_shows_paper_and_range() -> None:
    lines = table_lines(figure_rows({0: runs_of(100.0), 1: runs_of(80.0)}))
    assert len(lines) == 2 + len(FIGURES)
    assert "| step time, sync+ / rollart | 2.05 | given | 2.25 | 2.00-2.50 |" in lines
    assert "| throughput, rollart / sync | 2.65-4.58 | given | 4.00 | 4.00-4.00 |" in lines


def test_the_picture_is_written(tmp_path: Path) -> None:
    draw_ratios(tmp_path / "ratios.png", figure_rows({0: runs_of(100.0)}))
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_is_a_plan_that_fits(case: Any) -> None:
    job = load_scenario(SCENARIOS / f"{case.scenario}.yaml", case.settings).job()
    assert job.plan.placement.trainer.devices == 32
    assert job.plan.policy.name == (case.name if case.name in POLICIES else "rollart")


def test_the_three_splits_cost_about_the_same() -> None:
    prices = {}
    for case in CASES[-3:]:
        placement = (job := load_scenario(SCENARIOS / f"{case.scenario}.yaml", case.settings).job()).plan.placement
        prices[case.name] = sum(
            group.engines * group.tensor_parallel * job.cluster.pools[group.pool].price_per_hour
            for group in placement.engine_groups
        )
    assert prices == pytest.approx({"64 H800 + 24 H20": 206.4, "72 H800": 205.2, "208 H20": 208.0})
