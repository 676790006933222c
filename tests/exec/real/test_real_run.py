"""Runs on real engines, environments and a real trainer, on this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rollart import api
from rollart.domain.errors import InputError
from rollart.domain.events import EngineLost, EnvironmentFailed, TrainerLost
from rollart.runlog.reader import records
from tests.exec.real.killing import kill

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.filterwarnings("default")]

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
SMALL = ["training.batch_size=32", "policy.recovery.checkpoint_every=2"]


def test_engines_hold_the_trainers_weights_and_whatever_is_killed_comes_back(tmp_path):
    victims = {2: "EngineProcess", 5: "EnvironmentHost", 8: "TrainerProcess"}

    def progress(version, _):
        if version in victims:
            kill(victims.pop(version))

    told = []
    scenario = api.load_scenario(LAPTOP, [*SMALL, "steps=14"])
    summary = api.run(scenario, out=tmp_path / "run", progress=progress, tell=told.append).summary
    assert victims == {}
    # A step that is made again is told again.
    assert len(told) >= 14
    assert all(part in told[-1] for part in ("step 14/14: ", "FrozenLake 0.", "counting 0.", "busy turns "))
    assert summary["driver"] == "exec"
    assert summary["trajectories"]["trained"] == 14 * 32
    assert summary["trajectories"]["failed"] == 0
    assert 0.0 < summary["logprob_gap"]["max"] < 1e-4
    assert set(summary["reward"]) == {"FrozenLake", "counting"}
    assert summary["predicted_step_time_s"] > 0.0
    assert (tmp_path / "run/figures/rewards.png").stat().st_size > 10_000
    kinds = {type(record) for _, _, record in records(tmp_path / "run/runlog.parquet")}
    assert {EngineLost, EnvironmentFailed, TrainerLost} <= kinds
    failures = [json.loads(line)["what"] for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    for what in ("engine", "a process of environments", "the trainer"):
        assert any(failed.startswith(what) for failed in failures)
        assert any(line.startswith(f"failed: {what}") for line in told)
    assert api.check(tmp_path / "run").ok


RUN = """
import os, signal
from pathlib import Path
from rollart import api

def progress(version, _):
    if version == 3:
        os.kill(os.getpid(), signal.SIGKILL)

scenario = api.load_scenario(Path({laptop!r}), {settings!r})
api.run(scenario, out={out!r}, progress=progress)
"""


ON_NODES = """
from pathlib import Path
from ray.cluster_utils import Cluster
from rollart import api

nodes = Cluster(initialize_head=True, head_node_args={{"num_cpus": 1, "resources": {{"pool:training": 1}}}})
try:
    for pool in ("turns", "answers"):
        nodes.add_node(num_cpus=1, resources={{f"pool:{{pool}}": 1}})
    scenario = api.load_scenario(Path({laptop!r}), {settings!r})
    api.run(scenario, out={out!r}, resume=True, address=nodes.address)
finally:
    nodes.shutdown()
"""
"""Every pool is a node of Ray. In a process of its own: where Ray was used before, its head may not start."""


def test_a_run_goes_on_after_its_driver_was_killed_and_on_several_nodes(tmp_path):
    out, settings = tmp_path / "run", [*SMALL, "steps=6"]

    def run_apart(code):
        told = code.format(laptop=str(LAPTOP), settings=settings, out=str(out))
        # Not by its return code: where Ray was used before in this process, the system may have taken that away.
        subprocess.run([sys.executable, "-c", told], check=False)

    run_apart(RUN)
    assert not (out / "summary.json").exists()
    scenario = api.load_scenario(LAPTOP, settings)
    with pytest.raises(InputError, match="--resume"):
        api.run(scenario, out=out)
    run_apart(ON_NODES)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["steps"] == 6
    assert summary["trajectories"]["trained"] == 6 * 32
    assert summary["logprob_gap"]["max"] < 1e-4
    assert api.check(out).ok
    assert sorted(folder.name for folder in (out / "checkpoints").iterdir()) == ["version-4", "version-6"]
