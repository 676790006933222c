import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments.policies_why import QUESTIONS, line
from experiments.policies_why import SCENARIOS as SCENARIO_FOLDER
from experiments.tau_bench import policy_rows, scenario_mapping
from rollart.runlog.stages import Stage
from rollart.scenario.load import load_scenario

ROOT = Path(__file__).resolve().parents[2]


def summary(policy: str) -> dict[str, Any]:
    return {
        "policy": policy,
        "step_time_s": {"mean": 60.0},
        "stages_s": {stage.value: 10.0 for stage in Stage},
        "busy_s": {stage.value: 20.0 for stage in Stage},
        "throughput": {"tokens_per_s": 5000.0},
    }


def test_policy_rows() -> None:
    assert policy_rows([summary("sync+")]) == [("sync+", "60", "10", "10", "10", "10", "10", "5,000")]


def test_the_scenario_has_half_of_its_devices_train() -> None:
    mapping = scenario_mapping(Path("/t.jsonl"))
    assert mapping["cluster"]["pools"]["h800"]["count"] == 16
    assert mapping["placement"]["trainer"]["devices"] + mapping["placement"]["engines"][0]["engines"] == 16
    assert mapping["tasks"][0]["workload"]["trace"] == "/t.jsonl"


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "experiments" / "tau_bench.py"), str(tmp_path / "no.json")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"error: {tmp_path}/no.json: no such file; ")
    assert ran.stderr.count("\n") == 1


def test_every_question_is_a_plan_that_fits() -> None:
    for question in QUESTIONS:
        job = load_scenario(SCENARIO_FOLDER / f"{question.scenario}.yaml", question.settings).job()
        assert job.steps == 6


def test_an_answer_is_a_line() -> None:
    words = line(QUESTIONS[0], summary("sync")).removeprefix(QUESTIONS[0].about).split()
    assert words == ["60.0", "10", "10", "10", "10", "10", "20", "20.0"]
