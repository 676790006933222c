"""Figures of traces."""

from pathlib import Path

from rollart.report.figures.trace_strips import draw_strips
from rollart.report.figures.trace_tails import MOST_TASKS, draw_tails
from rollart.report.figures.trace_turns import draw_tokens_against_turns
from rollart.workload.info import TraceTally
from rollart.workload.trace import TraceTrajectory, TraceTurn


def played(group: int, turns: int, task: str = "maze") -> TraceTrajectory:
    steps = [TraceTurn(output_tokens=20 + group, env_s=0.5 * k) for k in range(turns)]
    if turns > 3:
        steps[2] = TraceTurn(prompt_tokens=5, kept_tokens=40, output_tokens=3, env_s=0.1)
    return TraceTrajectory(task=task, group=str(group), prompt_tokens=100, turns=tuple(steps), reset_s=2.0)


TRACE = [played(group, 1 + group % 7) for group in range(60)]


def tally(trace: list[TraceTrajectory]) -> TraceTally:
    found = TraceTally()
    for one in trace:
        found.add(one)
    return found


def is_png(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_every_figure_is_drawn_and_equal_traces_give_equal_files(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        draw_tails(folder / "tails.png", tally(TRACE).distributions(), "t")
        draw_tokens_against_turns(folder / "turns.png", [("maze", TRACE)], "t")
        draw_strips(folder / "strips.png", TRACE[:12], "t")
    for name in ("tails.png", "turns.png", "strips.png"):
        assert is_png(tmp_path / "a" / name)
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_many_tasks_leave_the_smaller_out(tmp_path: Path) -> None:
    trace = [played(0, 1 + place % 3, task=f"task {place}") for place in range(MOST_TASKS + 5)]
    draw_tails(tmp_path / "t.png", tally(trace).distributions(), "t")
    assert is_png(tmp_path / "t.png")


def test_a_trace_without_turns_says_so(tmp_path: Path) -> None:
    lost = TraceTrajectory(task="a", group="x", prompt_tokens=9, turns=(), reset_outcome="failed", outcome="failed")
    draw_tails(tmp_path / "a.png", tally([lost]).distributions(), "t")
    draw_tokens_against_turns(tmp_path / "b.png", [], "t")
    draw_strips(tmp_path / "c.png", [], "t")
    assert all(is_png(tmp_path / f"{name}.png") for name in "abc")
