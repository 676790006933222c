"""`rollart trace`: the verbs that make traces and profiles out of traces."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rollart.cli.main import app

LAPTOP = str(Path(__file__).resolve().parents[2] / "traces/laptop.yaml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trace(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


@pytest.fixture
def made(here: Path) -> Path:
    """Both tasks, 20 groups of 3 each."""
    assert trace("synth", LAPTOP, "-o", "t.jsonl", "--groups", 20, "--group-size", 3).exit_code == 0
    return here / "t.jsonl"


def lines(name: str) -> list[str]:
    return Path(name).read_text().splitlines()


def test_a_trace_is_split_and_merged_back(made: Path) -> None:
    assert trace("split", made, "-o", "a.jsonl", "--rest", "b.jsonl", "--share", 0.4).exit_code == 0
    assert trace("merge", "a.jsonl", "b.jsonl", "-o", "m.jsonl", "--same-groups").exit_code == 0
    assert 0 < len(lines("a.jsonl")) < 120
    assert sorted(lines("m.jsonl")) == sorted(lines("t.jsonl"))


def test_a_trace_is_filtered_and_sampled(made: Path) -> None:
    assert trace("filter", made, "-o", "f.jsonl", "--task", "FrozenLake", "--max-turns", 6).exit_code == 0
    assert {json.loads(line)["task"] for line in lines("f.jsonl")} == {"FrozenLake"}
    assert max(len(json.loads(line)["turns"]) for line in lines("f.jsonl")) <= 6
    assert trace("sample", made, "-o", "s.jsonl", "--groups", 4, "--members", 2).exit_code == 0
    assert len(lines("s.jsonl")) == 2 * 4 * 2


def test_a_profile_is_fitted_and_drawn_from(made: Path) -> None:
    result = trace("profile", made, "-o", "p.yaml", "--source", "a test")
    assert result.exit_code == 0 and "FrozenLake" in result.stdout
    assert trace("synth", "p.yaml", "-o", "again.jsonl", "--groups", 5).exit_code == 0
    assert len(lines("again.jsonl")) == 2 * 5 * 8


def test_knobs_reach_the_trace() -> None:
    options = ("--task", "counting", "--groups", 4, "--group-size", 1, "--drift", "output_tokens=0.5")
    assert trace("synth", LAPTOP, "-o", "d.jsonl", *options, "--groups-per-step", 2).exit_code == 0
    assert [json.loads(line)["turns"][0]["output_tokens"] for line in lines("d.jsonl")] == [32, 32, 48, 48]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["filter", "t.jsonl", "-o", "x.jsonl", "--min-turns", "999"], "error: x.jsonl: no trajectory is left"),
        (["split", "t.jsonl", "-o", "x.jsonl", "--rest", "x.jsonl"], "error: x.jsonl: is named for both parts"),
        (["merge", "t.jsonl", "t.jsonl", "-o", "x.jsonl"], "error: t.jsonl: is named twice"),
        (["sample", "nope.jsonl", "-o", "x.jsonl"], "error: nope.jsonl: cannot be read"),
        (["synth", LAPTOP, "-o", "x.jsonl", "--drift", "turns"], "error: --drift is 'turns'; must be NAME=NUMBER"),
        (["synth", LAPTOP, "-o", "x.jsonl", "--scale-tail", "foo=2"], "error: scale-tail names 'foo'"),
        (["profile", "t.jsonl", "-o", "x.yaml", "--times", "no.yaml"], "error: no.yaml: cannot be read"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_leaves_no_file(made: Path, arguments: list[str], message: str) -> None:
    result = trace(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(message) and result.stderr.count("\n") == 1
    assert not (made.parent / "x.jsonl").exists() and not list(made.parent.glob(".*.part"))


def test_what_is_left_out_of_a_filter_can_be_written_over_its_source(made: Path) -> None:
    assert trace("filter", made, "-o", made, "--task", "counting").exit_code == 0
    assert len(made.read_text().splitlines()) == 60


def test_info_draws_figures_and_says_what_is_heavy(made: Path) -> None:
    result = trace("info", made, "--figures", "figures")
    assert result.exit_code == 0
    assert "counting: 60 trajectories in 20 groups" in " ".join(result.stdout.split())
    assert "decode-heavy" in result.stdout and "env_s drawn" in result.stdout
    found = sorted(path.name for path in Path("figures").iterdir())
    assert found == ["strips-FrozenLake.png", "strips-counting.png", "tails.png", "turns.png"]
    document = json.loads(trace("info", made, "--json").stdout)
    assert document["tasks"]["counting"]["heavy"] == "decode"
