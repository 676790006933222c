"""The command line: exit codes, and what goes to stdout and stderr."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import rollart
from rollart.cli.main import app
from rollart.domain.errors import CapacityError
from rollart.runlog.stages import Stage

ROOT = Path(__file__).resolve().parents[2]
LAPTOP = str(ROOT / "experiments/scenarios/laptop.yaml")
PROFILE = str(ROOT / "traces/laptop.yaml")

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


def summary(policy: str, seed: int, steps: int, mean_s: float) -> dict[str, Any]:
    """A summary with the keys of `summary.json` that the command line shows."""
    return {
        "policy": policy,
        "seed": seed,
        "steps": steps,
        "step_time_s": {"mean": mean_s, "p50": mean_s, "p90": mean_s},
        "throughput": {"tokens_per_s": 1000.0 / mean_s, "trajectories_per_s": 1.0},
        "trajectories": {"trained": 10, "stale": 0},
        "staleness": {"mean": 0.5, "max": 1},
        "stages_s": {stage.value: mean_s / len(Stage) for stage in Stage},
        "waste": {"stale": 0.0, "failed": 1.0},
        "utilization": {"h800": 0.5},
        "kv_occupancy": None,
        "cost_per_step": 2.0,
    }


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Put a fake of the Python API in place, which records how it is called."""
    made: list[dict[str, Any]] = []

    def simulate(scenario: Any, **options: Any) -> SimpleNamespace:
        job = scenario.job()
        made.append({"policy": job.plan.policy.name, "seed": job.seed, "steps": job.steps, **options})
        if scenario.policy == "one-off":
            raise CapacityError("too big")
        if options["progress"]:
            options["progress"](1, 2)
        options["out"].mkdir(parents=True, exist_ok=True)
        (options["out"] / "summary.json").write_text("{}")
        mean_s = {"rollart": 10.0, "sync+": 20.0}.get(job.plan.policy.name, 15.0) + job.seed
        return SimpleNamespace(summary=summary(job.plan.policy.name, job.seed, job.steps, mean_s))

    fake = SimpleNamespace(simulate=simulate, bench=lambda: {"turns_per_s": 5e4, "ratio": 0.05, "peak_rss_mb": 100.0})
    monkeypatch.setitem(sys.modules, "rollart.api", fake)  # type: ignore[arg-type]
    monkeypatch.setattr(rollart, "api", fake, raising=False)
    yield made


def test_version_and_help(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"rollart {rollart.__version__}\n"
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(verb in result.stdout for verb in ("simulate", "check", "trace", "doctor", "bench"))


def test_simulate_prints_one_json_object(invoke: Invoke, calls: list[dict[str, Any]], tmp_path: Path) -> None:
    result = invoke("simulate", LAPTOP, "--json", "--steps", 3, "--seed", 7)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["step_time_s"]["mean"] == 17.0
    assert result.stderr == "wrote runs/laptop-rollart\n"
    assert calls == [{"policy": "rollart", "seed": 7, "steps": 3, "out": Path("runs/laptop-rollart"), "progress": None}]
    assert (tmp_path / "runs/laptop-rollart/summary.json").is_file()


def test_simulate_shows_a_table(invoke: Invoke, calls: list[dict[str, Any]]) -> None:
    result = invoke("simulate", LAPTOP, "--no-log", "-o", "here")
    assert result.exit_code == 0
    assert "step time, s: mean (p50, p90)" in result.stdout
    assert "10 trained" in result.stdout
    assert calls[0]["log"] is False


@pytest.mark.usefixtures("calls")
def test_comparison_gives_every_run_a_folder(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("simulate", LAPTOP, "--compare", "sync+,rollart", "--seeds", 2, "--json", "-o", "both")
    found = json.loads(result.stdout)
    assert [run["policy"] for run in found["runs"]] == ["sync+", "sync+", "rollart", "rollart"]
    means = {row["policy"]: row["step_time_s"] for row in found["comparison"]}
    assert means["sync+"]["mean"] == 20.5
    # Two values one apart: deviation sqrt(1/2), over sqrt(2) runs, times 12.7 for one degree of freedom.
    assert means["rollart"] == {"mean": 10.5, "half_width_95": pytest.approx(12.7062 / 2, rel=1e-5)}
    assert json.loads((tmp_path / "both/comparison.json").read_text()) == found["comparison"]
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == [
        "comparison.json",
        "comparison.png",
        "rollart-seed0",
        "rollart-seed1",
        "sync+-seed0",
        "sync+-seed1",
    ]
    table = invoke("simulate", LAPTOP, "--compare", "sync+,rollart", "-o", "both")
    assert table.exit_code == 0
    assert "times the fastest" in table.stdout.replace("\n", " ")
    single = json.loads(invoke("simulate", LAPTOP, "--compare", "rollart", "--json", "-o", "one").stdout)
    assert [run["policy"] for run in single["runs"]] == ["rollart"]


@pytest.mark.usefixtures("calls")
def test_results_are_replaced_and_foreign_folders_refused(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("simulate", LAPTOP, "-o", "run").exit_code == 0
    assert invoke("simulate", LAPTOP, "-o", "run").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    result = invoke("simulate", LAPTOP, "-o", "mine")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: mine: is not empty and not a run of ours; choose another folder with -o\n",
    )
    result = invoke("simulate", LAPTOP, "-o", "mine/thesis.tex/deep")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: mine/thesis.tex/deep: cannot be written: Not a directory")


def test_a_model_that_does_not_fit_is_one_line(invoke: Invoke, calls: list[dict[str, Any]]) -> None:
    result = invoke("simulate", LAPTOP, "--policy", "one-off")
    assert (result.exit_code, result.stderr) == (1, "error: too big\n")
    assert calls[0]["policy"] == "one-off"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["simulate"], 2, "Missing argument"),
        (["simulate", "nope.yaml"], 1, "error: nope.yaml: cannot be read: No such file or directory"),
        (["simulate", "empty.yaml"], 1, "error: empty.yaml: is empty"),
        (["simulate", "noise.yaml"], 1, "error: noise.yaml: byte 0 is not UTF-8 text"),
        (
            ["simulate", "evil.yaml"],
            1,
            "error: evil.yaml: line 1: tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
        (["simulate", "broken.yaml"], 1, "error: broken.yaml: line 2: "),
        (["simulate", LAPTOP, "--set", "cluster.nonsense=3"], 1, "error: laptop.yaml: cluster.nonsense: unknown key"),
        (
            ["simulate", LAPTOP, "--set", "training.batch_size=-4"],
            1,
            "training.batch_size: -4 is not allowed; must be a",
        ),
        (["simulate", LAPTOP, "--set", "policy=magic"], 1, "error: laptop.yaml: policy: 'magic' is unknown"),
        (["simulate", LAPTOP, "--policy", "magic"], 1, "error: laptop.yaml: policy: 'magic' is unknown"),
        (["simulate", LAPTOP, "--compare", "sync,,areal"], 2, "must be different policies with commas between them"),
        (["simulate", LAPTOP, "--compare", "sync", "--policy", "areal"], 2, "give either --policy or --compare"),
        (["simulate", LAPTOP, "--steps", "0"], 2, "'--steps'"),
        (["simulate", LAPTOP, "--seed", "-1"], 2, "'--seed'"),
        (["simulate", LAPTOP, "--steps", "x"], 2, "'--steps'"),
        (["simulate", LAPTOP, "--plan", "nope.yaml"], 1, "error: nope.yaml: cannot be read"),
        (["simulate", LAPTOP, "-o", "/proc/nope/x"], 1, "error: /proc/nope/x: cannot be written"),
        (["trace", "info", "half.jsonl"], 1, "error: half.jsonl:1: "),
        (["trace", "info", "x.jsonl.gz"], 1, "error: x.jsonl.gz: "),
        (["trace", "info", "neg.jsonl", "--strict"], 1, "error: neg.jsonl:1: "),
        (["trace", "info", "nope.jsonl"], 1, "error: nope.jsonl: cannot be read"),
        (
            ["trace", "import", "no-such-format", "half.jsonl", "-o", "z.jsonl"],
            1,
            "error: format 'no-such-format' is not",
        ),
        (
            ["trace", "import", "tau-bench", "half.jsonl", "-o", "z.jsonl"],
            1,
            "error: half.jsonl: is not a tau-bench file",
        ),
        (["trace", "import", "tau-bench", "half.jsonl"], 2, "Missing option"),
        (["trace", "synth", PROFILE, "-o", "z.jsonl", "--task", "nope"], 1, "has no task 'nope'; it has FrozenLake"),
        (["trace", "synth", PROFILE, "-o", "/proc/nope/z.jsonl"], 1, "error: /proc/nope/z.jsonl: cannot be written"),
        (["trace", "synth", PROFILE, "-o", "z.jsonl", "--groups", "0"], 2, "'--groups'"),
        (["engine", "load", "--model", "nope"], 2, "Missing option '--device'"),
    ],
)
@pytest.mark.usefixtures("calls")
def test_bad_input_is_short(invoke: Invoke, tmp_path: Path, words: list[str], code: int, message: str) -> None:
    (tmp_path / "empty.yaml").write_bytes(b"")
    (tmp_path / "noise.yaml").write_bytes(b"\xff\xfe\x00noise")
    (tmp_path / "evil.yaml").write_text('!!python/object/apply:os.system ["touch pwned"]\n')
    (tmp_path / "broken.yaml").write_text("a: [1,")
    (tmp_path / "half.jsonl").write_text('{"task": "x"')
    (tmp_path / "x.jsonl.gz").write_bytes(b"\x1f\x8b" + b"\x07" * 98)
    (tmp_path / "neg.jsonl").write_text('{"task":"a","turns":[{"prompt_tokens":-5,"output_tokens":NaN}]}\n')
    result = invoke(*words)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 6
    assert isinstance(result.exception, SystemExit)
    assert not (tmp_path / "pwned").exists()


def test_traces_are_made_and_read(invoke: Invoke, tmp_path: Path) -> None:
    made = invoke("trace", "synth", PROFILE, "-o", "t.jsonl.gz", "--groups", 3, "--group-size", 2, "--task", "counting")
    assert (made.exit_code, made.stdout, made.stderr) == (0, "", "wrote 6 trajectories to t.jsonl.gz\n")
    assert len(gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()).splitlines()) == 6
    found = json.loads(invoke("trace", "info", "t.jsonl.gz", "--json").stdout)
    assert (found["good_lines"], found["bad_lines"]) == (6, 0)
    assert found["tasks"]["counting"]["quantities"]["output_tokens"]["mean"] == 32.0
    table = invoke("trace", "info", "t.jsonl.gz")
    assert table.exit_code == 0
    assert "counting: 6 trajectories in 3 groups" in table.stdout


def test_bad_lines_are_counted(invoke: Invoke, tmp_path: Path) -> None:
    invoke("trace", "synth", PROFILE, "-o", "t.jsonl", "--groups", 1, "--task", "counting")
    with (tmp_path / "t.jsonl").open("a") as file:
        file.write("{}\n")
    result = invoke("trace", "info", "t.jsonl")
    assert result.exit_code == 0
    assert result.stderr.startswith("1 bad lines left out; first: t.jsonl:9: ")


def test_real_trajectories_are_imported(invoke: Invoke) -> None:
    shared = ROOT / "../shared/traces/tau_bench/gpt-4o-airline.json.gz"
    if not shared.is_file():
        pytest.skip("the public trace is not here")
    result = invoke("trace", "import", "tau-bench", shared, "-o", "tau.jsonl")
    assert (result.exit_code, result.stderr) == (0, "wrote 200 trajectories to tau.jsonl\n")


def test_doctor_and_bench(invoke: Invoke, calls: list[dict[str, Any]]) -> None:
    found = json.loads(invoke("doctor", "--json").stdout)
    states = {finding["what"]: finding["state"] for finding in found["findings"]}
    assert states["simpy"] == states["this folder"] == "ok"
    assert {finding["state"] for finding in found["findings"]} <= {"ok", "missing", "optional"}
    assert "what to do" in invoke("doctor").stdout
    assert json.loads(invoke("bench", "--json").stdout)["ratio"] == 0.05
    assert "50,000" in invoke("bench").stdout
    assert calls == []


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(28, "No space left on device", "a/b"), 1, "error: a/b: No space left on device; free some space or"),
        (MemoryError(), 1, "error: out of memory"),
    ],
)
def test_interruptions_are_one_line(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, message: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr("rollart.scenario.load.load_scenario", fail)
    result = invoke("simulate", LAPTOP)
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


def test_a_bug_keeps_its_traceback(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("broken promise")

    monkeypatch.setattr("rollart.scenario.load.load_scenario", fail)
    assert isinstance(invoke("simulate", LAPTOP).exception, AssertionError)
