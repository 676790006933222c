import csv
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollart.domain.errors import OutputError
from rollart.report.steps import write_steps
from rollart.report.summary import summarize, write_summary
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics
from tests.runlog.scripts import one_step_run, reduce_script
from tests.runlog.toyrun import header

KEYS = {
    "policy",
    "driver",
    "scenario",
    "seed",
    "steps",
    "warmup_steps",
    "step_time_s",
    "throughput",
    "trajectories",
    "staleness",
    "lag",
    "truncated_share",
    "stages_s",
    "busy_s",
    "waste",
    "kv_occupancy",
    "utilization",
    "cost_per_step",
    "tasks",
    "critical_path",
    "simulator",
}


def test_it_has_exactly_these_keys(toy: Any, nothing: RunStatistics) -> None:
    for statistics in (toy.statistics, nothing):
        summary = summarize(statistics)
        assert set(summary) == KEYS
        assert list(summary["stages_s"]) == list(summary["busy_s"]) == [stage.value for stage in Stage]
        assert list(summary["waste"]) == ["stale", "surplus", "failed", "recomputed", "preempted"]


def test_stages_add_up_to_the_mean_step_time(toy: Any) -> None:
    summary = summarize(toy.statistics)
    assert math.fsum(summary["stages_s"].values()) == pytest.approx(summary["step_time_s"]["mean"], rel=1e-9)


def test_warm_up_steps_are_left_out(toy: Any) -> None:
    counted = toy.statistics.steps[1:]
    summary = summarize(toy.statistics)
    total_s = sum(step.duration_s for step in counted)
    assert (summary["steps"], summary["warmup_steps"]) == (4, 1)
    assert summary["step_time_s"]["mean"] == pytest.approx(total_s / 3)
    assert summary["step_time_s"]["p50"] == sorted(step.duration_s for step in counted)[1]
    assert summary["throughput"]["tokens_per_s"] == pytest.approx(sum(step.tokens for step in counted) / total_s)
    assert summary["throughput"]["trajectories_per_s"] == pytest.approx(12 / total_s)


def test_hardware_shares_follow_from_the_samples(toy: Any) -> None:
    summary = summarize(toy.statistics)
    total_s = sum(step.duration_s for step in toy.statistics.steps[1:])
    # Two engines hold 50 of 200 blocks all the time; the trainer works 2 s a step.
    assert summary["kv_occupancy"] == pytest.approx(0.25)
    assert summary["utilization"]["train"] == pytest.approx(6.0 / total_s)
    assert summary["cost_per_step"] == pytest.approx(756 / 3600 * total_s / 3 + 1.0)


def test_ends_and_tasks_are_of_the_whole_run(toy: Any) -> None:
    summary = summarize(toy.statistics)
    assert summary["trajectories"]["trained"] == 16
    assert sum(task["trained"] for task in summary["tasks"]) == 16
    assert sum(task["started"] for task in summary["tasks"]) == sum(summary["trajectories"].values())


def test_an_empty_run_has_nulls_and_no_numbers_that_json_lacks(nothing: RunStatistics, tmp_path: Path) -> None:
    summary = summarize(nothing, {"wall_s": 0.0, "turns_per_s": math.inf})
    assert summary["step_time_s"] == {"mean": None, "p50": None, "p90": None}
    assert summary["utilization"] == {"rollout": None, "train": None}
    assert set(summary["waste"].values()) == {None}
    assert summary["simulator"] == {"wall_s": 0.0, "turns_per_s": None}
    write_summary(tmp_path / "summary.json", summary)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary


def test_the_worst_steps_are_told_in_words() -> None:
    statistics = reduce_script(header(), one_step_run())
    (only,) = summarize(_without_warm_up(statistics))["critical_path"]
    assert only == (
        "step 0 (20.0 s) waited 10.0 s for trajectory 0 of maze on engine 0: "
        "40 % generation, 30 % environment, 30 % reward"
    )


def _without_warm_up(statistics: RunStatistics) -> RunStatistics:
    counted = msgspec.structs.replace(statistics.header, warmup_steps=0)
    return dataclasses.replace(statistics, header=counted)


def test_steps_are_one_row_each(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    write_steps(path, toy.statistics)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [step.step for step in toy.statistics.steps]
    for row, step in zip(rows, toy.statistics.steps, strict=True):
        stages = math.fsum(float(row[f"path_{stage.value}_s"]) for stage in Stage)
        assert stages == pytest.approx(float(row["step_time_s"]), rel=1e-9)
        assert float(row["step_time_s"]) == step.duration_s
        assert row["slowest_task"] in ("maze", "math")
        assert 0.0 <= float(row["utilization_train"]) <= 1.0


def test_unknown_cells_are_empty(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    write_steps(path, reduce_script(header(), one_step_run()))
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["cost"] == row["kv_occupancy"] == row["utilization_train"] == ""


def test_a_folder_that_is_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="give a folder that is writable"):
        write_summary(tmp_path / "file" / "summary.json", {})
