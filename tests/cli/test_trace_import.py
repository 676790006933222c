"""`rollart trace import`: its options, and what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rollart.cli.main import app

TIMES = str(Path(__file__).resolve().parents[2] / "traces/tau-bench-times.yaml")
CHAT = {"messages": [{"role": "user", "content": "abcdefgh"}, {"role": "assistant", "content": "x"}]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["trace", "import", *words])


def saved(name: str, *lines: Any) -> str:
    Path(name).write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return name


def written(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_bad_lines_are_named_and_left_out() -> None:
    result = run("auto", saved("c.jsonl", CHAT, "x", CHAT), "-o", "t.jsonl", "--task", "mine", "--tokens", "bytes")
    assert result.exit_code == 0 and len(written("t.jsonl")) == 2
    assert [(one["task"], one["prompt_tokens"], one["reset_s"]) for one in written("t.jsonl")] == [
        ("mine", 11, None)
    ] * 2
    said = result.stderr.splitlines()
    assert said[0].startswith("c.jsonl:2: is not JSON") and said[1] == "left out 1 bad records"
    assert said[2] == "wrote 2 trajectories to t.jsonl (files read: 1 openai-chat)"


def test_strict_stops_and_leaves_the_old_file() -> None:
    Path("t.jsonl").write_text("old")
    result = run("auto", saved("c.jsonl", CHAT, "x", CHAT), "-o", "t.jsonl", "--strict")
    assert result.exit_code == 1 and result.stderr.startswith("error: c.jsonl:2: is not JSON")
    assert Path("t.jsonl").read_text() == "old" and len(list(Path().iterdir())) == 2


def test_missing_times_are_drawn_from_a_named_profile_only() -> None:
    saved("c.jsonl", CHAT)
    for name, seed in (("a.jsonl", "1"), ("b.jsonl", "1"), ("c2.jsonl", "2")):
        assert run("auto", "c.jsonl", "-o", name, "--times", TIMES, "--seed", seed).exit_code == 0
    (found,) = written("a.jsonl")
    assert found["turns"][0]["env_s"] > 0 and found["provenance"]["env_s"] == "drawn"
    assert written("a.jsonl") == written("b.jsonl") != written("c2.jsonl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gone", "c.jsonl"), "error: format 'gone' is not known; known are auto, areal"),
        (("verl", "c.jsonl"), "error: c.jsonl: this looks like openai-chat, not like verl"),
        (("auto", "gone.jsonl"), "error: gone.jsonl: does not exist"),
        (("auto", "c.jsonl", "--tokens", "gpt"), "error: --tokens 'gpt' is not known"),
        (("auto", "c.jsonl", "--times", "gone.yaml"), "error: gone.yaml: cannot be read"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], message: str) -> None:
    saved("c.jsonl", CHAT)
    result = run(*words, "-o", "t.jsonl")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1) and result.stderr.startswith(message)
    assert not Path("t.jsonl").exists()
