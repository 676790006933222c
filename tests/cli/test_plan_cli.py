"""`rollart plan`: what its options become."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from rollart import api
from rollart.cli.main import app
from rollart.planning.plan_scenario import SensitivityTable

LAPTOP = str(Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Planning replaced by a note of what it was asked for."""
    made: list[dict[str, Any]] = []

    def plan(scenario: api.Scenario, **options: Any) -> SimpleNamespace:
        made.append({"planner": scenario.document.planner, **options})
        return SimpleNamespace(as_dict=lambda: {"status": "optimal"})

    monkeypatch.setattr(api, "plan", plan)
    monkeypatch.chdir(tmp_path)
    return made


def test_objective_and_limits_go_into_the_scenario(calls: list[dict[str, Any]]) -> None:
    words = ["plan", LAPTOP, "--objective", "cost", "--budget", "9.5", "--deadline", "400", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"status": "optimal"}
    section = calls[0]["planner"]
    assert (section.objective, section.hourly_budget, section.deadline_s) == ("cost", 9.5, 400.0)


def test_the_other_options_say_how_it_is_planned(calls: list[dict[str, Any]]) -> None:
    words = "--time-limit 5 --top 2 --seeds 0 --steps 6 --workers 3 --seed 8 --sensitivity none -o mine.yaml --json"
    assert CliRunner().invoke(app, ["plan", LAPTOP, *words.split()]).exit_code == 0
    options = calls[0]["options"]
    assert (options.time_limit_s, options.top, options.repetitions, options.counted_steps) == (5.0, 2, 0, 6)
    assert (options.workers, options.seed, options.sensitivity) == (3, 8, SensitivityTable.NONE)
    assert calls[0]["out"] == Path("mine.yaml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--deadline", "0"], "planner.deadline_s: 0.0 is not allowed; must be a number > 0"),
        (["--budget", "0"], "planner.hourly_budget: 0.0 is not allowed; must be a number > 0"),
        (["--set", "planner.objective=speed"], "planner.objective: 'speed' is not allowed"),
    ],
)
def test_bad_input_is_one_line(calls: list[dict[str, Any]], words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["plan", LAPTOP, *words])
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not calls
