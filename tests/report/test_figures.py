import struct
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from rollart.domain.errors import OutputError
from rollart.report.figures import (
    draw_breakdown,
    draw_gantt,
    draw_policies,
    draw_staleness,
    draw_utilization,
    policy_bars,
)
from rollart.report.summary import summarize
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics


def size_px(path: Path) -> tuple[int, int]:
    """Width and height as the PNG header has them."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_figures_of_a_run(toy: Any, tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    for name, draw in (("a", draw_breakdown), ("b", draw_utilization), ("c", draw_staleness)):
        draw(tmp_path / f"{name}.png", toy.statistics)
        assert size_px(tmp_path / f"{name}.png")[0] == 1200
    draw_gantt(tmp_path / "d.png", toy.header, toy.records(), trajectories=12)
    assert size_px(tmp_path / "d.png") == (1200, 200 + 18 * 12)
    assert dict(mpl.rcParams) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png", "c.png", "d.png"]


def test_equal_figures_are_equal_files(toy: Any, tmp_path: Path) -> None:
    draw_staleness(tmp_path / "a.png", toy.statistics)
    draw_staleness(tmp_path / "b.png", toy.statistics)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_figures_of_an_empty_run_say_so(nothing: RunStatistics, tmp_path: Path) -> None:
    for name, draw in (("a", draw_breakdown), ("b", draw_utilization), ("c", draw_staleness)):
        draw(tmp_path / f"{name}.png", nothing)
    draw_gantt(tmp_path / "d.png", nothing.header, [])
    draw_policies(tmp_path / "e.png", [])
    assert len(list(tmp_path.iterdir())) == 5


def test_a_bar_has_the_mean_and_students_interval(toy: Any, tmp_path: Path) -> None:
    summary = summarize(toy.statistics)
    mean_s = summary["step_time_s"]["mean"]
    slower = {
        **summary,
        "step_time_s": {"mean": mean_s + 2.0},
        "stages_s": {**summary["stages_s"], "training": summary["stages_s"]["training"] + 2.0},
    }
    (bar,) = policy_bars({"toy": [summary, slower]})
    assert bar.step_time_s == pytest.approx(mean_s + 1.0)
    # Two values one second from their mean: 12.706 standard errors of one second, for one degree of freedom.
    assert bar.high_s - bar.low_s == pytest.approx(2 * 12.7062, rel=1e-4)
    assert bar.stages_s[Stage.TRAINING] == pytest.approx(3.0)
    draw_policies(tmp_path / "policies.png", [bar])
    assert size_px(tmp_path / "policies.png") == (1200, 550)


def test_one_seed_has_no_interval_and_an_empty_run_no_bar(toy: Any, nothing: RunStatistics) -> None:
    (bar,) = policy_bars({"toy": [summarize(toy.statistics)], "none": [summarize(nothing)]})
    assert bar.low_s == bar.high_s == pytest.approx(bar.step_time_s)


def test_a_figure_that_cannot_be_written_is_an_output_error(nothing: RunStatistics, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        draw_breakdown(tmp_path / "file" / "a.png", nothing)
