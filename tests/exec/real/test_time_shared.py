"""An engine and the trainer in turns on one core of this machine."""

from pathlib import Path

import pytest
import yaml

from rollart import api
from rollart.domain.commands import SuspendEngine, TrainBatch
from rollart.domain.events import EngineLost, TrainerLost, TrainingEnded, TurnGenerated
from rollart.runlog.reader import records
from tests.exec.real.killing import kill

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
STEPS, BATCH = 3, 32


def shared(folder, *settings):
    """The laptop's scenario with one engine, on the trainer's core."""
    document = yaml.safe_load(LAPTOP.read_text(encoding="utf-8"))
    document["cluster"]["pools"] = {"training": document["cluster"]["pools"]["training"]}
    (engine, _) = document["placement"]["engines"]
    document["placement"]["engines"] = [{**engine, "pool": "training", "time_shared": True}]
    document["execution"]["cores"] = {"training": "0"}
    del document["placement"]["affinity"], document["calibration"]
    path = folder / "shared.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return api.load_scenario(path, ["policy.preset=sync", f"training.batch_size={BATCH}", f"steps={STEPS}", *settings])


def test_shared_devices_are_asked_for_once(tmp_path):
    pytest.importorskip("ray")
    from rollart.exec.real.assembly import needed_devices

    assert needed_devices(shared(tmp_path).job()) == {"training": 1}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_engine_and_trainer_take_turns(tmp_path):
    summary = api.run(shared(tmp_path), out=tmp_path / "run").summary
    assert summary["trajectories"]["trained"] == STEPS * BATCH
    assert summary["trajectories"]["failed"] == 0
    assert 0.0 < summary["logprob_gap"]["max"] < 1e-4
    assert api.check(tmp_path / "run").ok
    told = [record for _, _, record in records(tmp_path / "run/runlog.parquet")]
    released = [record for record in told if isinstance(record, SuspendEngine) and record.release_memory]
    assert len(released) == STEPS
    training, meanwhile = False, 0
    for record in told:
        if isinstance(record, TrainBatch | TrainingEnded):
            training = isinstance(record, TrainBatch)
        meanwhile += training and isinstance(record, TurnGenerated)
    assert meanwhile == 0


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_who_is_killed_comes_back_when_it_is_its_turn(tmp_path):
    victims = {1: "TrainerProcess", 2: "EngineProcess"}

    def progress(version, _):
        if version in victims:
            kill(victims.pop(version))

    summary = api.run(shared(tmp_path, "steps=4"), out=tmp_path / "run", progress=progress).summary
    assert victims == {}
    assert summary["trajectories"]["trained"] == 4 * BATCH
    assert summary["trajectories"]["failed"] == 0
    assert 0.0 < summary["logprob_gap"]["max"] < 1e-4
    kinds = {type(record) for _, _, record in records(tmp_path / "run/runlog.parquet")}
    assert {EngineLost, TrainerLost} <= kinds
    assert api.check(tmp_path / "run").ok
