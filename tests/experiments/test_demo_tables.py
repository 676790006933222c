from types import SimpleNamespace
from typing import Any, cast

from experiments.demo import Outcome, cluster_of, outcome_rows, path_text
from rollart.api import CheckReport


def outcome(policy: str, step_s: float, **changes: Any) -> Outcome:
    summary = {
        "step_time_s": {"mean": step_s},
        "stages_s": {"generation": step_s / 4, "training": step_s * 3 / 4, "reward": 0.0},
        "throughput": {"tokens_per_s": 1234.5},
        "waste": {"stale": 30.0, "surplus": 50.0, "failed": 20.0, "recomputed": 99.0},
        "utilization": {"a": 0.5, "b": 1.0},
        "cost_per_step": 12.0,
        **changes,
    }
    check = cast(CheckReport, SimpleNamespace(ok=True))
    return Outcome(policy=policy, cluster="c", summary=summary, devices={"a": 6, "b": 2}, duration_s=250.0, check=check)


def test_shares_are_of_all_device_time() -> None:
    one = outcome("sync+", 80.0)
    assert one.wasted_share == 100 / (8 * 250)
    assert one.busy_share == (0.5 * 6 + 1.0 * 2) / 8


def test_rows_stand_beside_rollart() -> None:
    rows = outcome_rows([outcome("sync+", 80.0), outcome("rollart", 40.0)])
    assert rows[0] == ("sync+", "80", "2.00", "2.05", "1,234", "62%", "5.0%", "12")
    assert [row[2] for row in rows] == ["2.00", "1.00"]


def test_the_path_names_the_longest_stage_first_and_no_trifles() -> None:
    stages_s = {"generation": 20.0, "environment": 0.9, "training": 78.1, "weight_sync_exposed": 1.0}
    assert path_text(stages_s) == "training 78, generation 20, weight sync 1"


def test_only_rollart_has_mixed_devices() -> None:
    assert {policy: cluster_of(policy) for policy in ("rollart", "areal")} == {
        "rollart": "paper-128",
        "areal": "paper-128-h800",
    }
