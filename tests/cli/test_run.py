"""`rollart run --fake` as a user types it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollart import api
from rollart.cli.main import app
from rollart.exec.saved_run import SNAPSHOT
from rollart.running.run_scenario import KEPT

CHECKOUT = Path(__file__).resolve().parents[2]
SCENARIO = {
    "name": "small",
    "model": "SmolLM2-135M",
    "cluster": {"pools": {"h20": {"device": "H20", "count": 8}}, "environments": {"hosts": 1, "cores_per_host": 8}},
    "tasks": [
        {"name": name, "group_size": 4, "workload": {"profile": str(CHECKOUT / "traces/laptop.yaml")}}
        for name in ("FrozenLake", "counting")
    ],
    "training": {"batch_size": 16, "context_limit": 512},
    "placement": {
        "trainer": {"pool": "h20", "devices": 2},
        "engines": [{"name": "rollout", "pool": "h20", "engines": 2}],
    },
    "steps": 3,
}
"""JSON is YAML."""


@pytest.fixture
def fake(tmp_path):
    """The scenario's file, and the option that all runs here have."""
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SCENARIO))
    return [str(path), "--fake"]


def invoke(*words):
    return CliRunner().invoke(app, ["run", *map(str, words)])


def read(folder):
    return json.loads((folder / "summary.json").read_text())


def without_own(summary):
    """A summary without what the driver took and who it was."""
    return {key: value for key, value in summary.items() if key not in ("driver", "simulator")}


def test_a_dry_run_writes_what_a_simulation_writes(tmp_path, fake):
    result = invoke(*fake, "-o", tmp_path / "run", "--json")
    assert result.exit_code == 0, result.output
    simulated = CliRunner().invoke(app, ["simulate", fake[0], "-o", str(tmp_path / "sim")])
    assert simulated.exit_code == 0
    ours, theirs = ({str(p.relative_to(f)) for p in f.rglob("*")} for f in (tmp_path / "run", tmp_path / "sim"))
    assert ours == theirs
    summary = read(tmp_path / "run")
    assert json.loads(result.stdout) == summary
    assert summary["driver"] == "exec"
    assert without_own(summary) == without_own(read(tmp_path / "sim"))
    assert api.check(tmp_path / "run").ok


def test_a_dry_run_by_the_wall_clock_passes_its_check(tmp_path, fake):
    assert invoke(*fake, "--speed", 2000, "-o", tmp_path / "run").exit_code == 0
    assert api.check(tmp_path / "run").ok
    assert read(tmp_path / "run")["trajectories"]["trained"] == 48


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--speed", "0"], "must be above 0"),
        (["--speed", "2", "--logical"], "give either --speed or --logical"),
    ],
)
def test_wrong_options_are_refused(tmp_path, fake, words, message):
    result = invoke(*fake, "-o", tmp_path, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_what_cannot_start_leaves_no_folder(tmp_path, fake):
    result = invoke(fake[0], "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "execution: is missing" in result.stderr
    assert not (tmp_path / "out").exists()


def test_there_must_be_something_to_resume(tmp_path, fake):
    result = invoke(*fake, "-o", tmp_path / "run", "--resume")
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert "there is no interrupted run to resume" in result.output


SLOW = "1"
"""So that a step takes some tenths of a second."""


def begun(fake, folder, steps):
    """A run in a process of its own that has made at least one snapshot."""
    words = [*fake, "--speed", SLOW, "--steps", str(steps), "-o", str(folder)]
    command = [sys.executable, "-c", "from rollart.cli.main import main; main()", "run", *words]
    process = subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 120.0
    while not (folder / KEPT / SNAPSHOT).is_file():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_ctrl_c_saves_and_leaves_and_the_run_goes_on(tmp_path, fake):
    folder = tmp_path / "run"
    process = begun(fake, folder, 30)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the run was stopped after step" in said and "--resume" in said
    assert [entry.name for entry in folder.iterdir()] == [KEPT]
    again = invoke(*fake, "--steps", 30, "-o", folder)
    assert again.exit_code == 1
    assert "go on with --resume" in again.output
    other = invoke(*fake, "--steps", 31, "-o", folder, "--resume")
    assert other.exit_code == 1
    assert "had another steps" in other.output
    assert_goes_on(fake, folder, 30)


def assert_goes_on(fake, folder, steps):
    result = invoke(*fake, "--steps", steps, "-o", folder, "--resume")
    assert result.exit_code == 0, result.output
    assert api.check(folder).ok
    assert read(folder)["trajectories"]["trained"] == 16 * steps
    assert not (folder / KEPT).exists()


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(tmp_path, fake):
    folder = tmp_path / "run"
    process = begun(fake, folder, 30)
    process.kill()
    process.communicate()
    assert_goes_on(fake, folder, 30)
