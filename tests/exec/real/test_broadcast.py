"""Weights by vLLM's own transfer: the calls of both sides, and a whole run with gloo in the place of NCCL."""

import asyncio
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import call, create_autospec

import pytest

pytest.importorskip("ray")
pytest.importorskip("vllm")

import ray
import torch

from rollart import api
from rollart.domain.events import EngineLost
from rollart.exec.real import assembly, launch
from rollart.exec.real.weights.members import Member
from rollart.exec.real.weights.store import WeightStore
from rollart.runlog.reader import records
from tests.exec.real.gloo_weights import GlooEngine, GlooTrainer
from tests.exec.real.killing import kill
from tests.exec.real.models import tiny_policy

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"


class Process:
    """An engine's actor that notes what the trainer asks of it, in one list for all."""

    def __init__(self, name, asked, failing=()):
        self._name, self._asked, self._failing = name, asked, failing
        self.transfer = SimpleNamespace(remote=self._transfer)

    def _transfer(self, kind, info=None):
        self._asked.append((self._name, kind, info))
        if kind in self._failing:
            raise ray.exceptions.RayActorError
        return kind


@pytest.fixture
def sender(monkeypatch):
    """A broadcaster of a tiny policy whose tensors go nowhere, and the names of those that were gathered."""
    from vllm.distributed.weight_transfer import nccl_engine

    from rollart.exec.real.weights import broadcast

    gathered = []

    class Source(broadcast.PolicySource):
        def __iter__(self):
            for name, tensor in super().__iter__():
                gathered.append(name)
                yield name, tensor

    def sent(engine, source, meta):
        for _ in engine._checked_iter(source, meta):
            pass

    monkeypatch.setattr(ray, "get", lambda answers: answers)
    monkeypatch.setattr(nccl_engine, "open_trainer_endpoint", lambda _: SimpleNamespace(destroy=lambda: None))
    monkeypatch.setattr(nccl_engine.NCCLTrainerWeightTransferEngine, "_broadcast", sent)
    return broadcast.Broadcaster(Source(tiny_policy(), torch.bfloat16, torch.device("cpu")), 0), gathered


def members(asked, *, incarnation=0, failing=()):
    """Two engines, one of them with two workers."""
    return [
        Member(engine=0, incarnation=incarnation, workers=2, process=Process("wide", asked, failing)),
        Member(engine=1, incarnation=0, workers=1, process=Process("narrow", asked)),
    ]


def test_engines_join_once_with_ranks_behind_each_other_and_are_updated_each_time(sender):
    from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferInitInfo, NCCLWeightTransferUpdateInfo

    broadcaster, gathered = sender
    asked = []
    parameters = dict(tiny_policy().model.named_parameters())
    assert broadcaster.send(members(asked)) == 2 * sum(parameter.numel() for parameter in parameters.values())
    assert broadcaster.send(members(asked)) is not None
    one_update = [
        (name, kind)
        for kind in ("start_weight_update", "update_weights", "finish_weight_update")
        for name in ("wide", "narrow")
    ]
    joining = [("wide", "init_weight_transfer_engine"), ("narrow", "init_weight_transfer_engine")]
    assert [(name, kind) for name, kind, _ in asked] == [*joining, *one_update, *one_update]
    wide, narrow = (NCCLWeightTransferInitInfo(**info) for _, kind, info in asked[:2])
    assert (wide.rank_offset, narrow.rank_offset, wide.world_size) == (1, 3, 4)
    assert (wide.packed, wide.master_port) == (True, narrow.master_port)
    told = NCCLWeightTransferUpdateInfo(**asked[4][2])
    assert told.names == list(parameters) == gathered[: len(parameters)]
    assert set(told.dtype_names) == {"bfloat16"}
    assert told.shapes == [list(parameter.shape) for parameter in parameters.values()]


def test_a_restarted_engine_makes_a_new_group(sender):
    broadcaster, _ = sender
    asked = []
    broadcaster.send(members([]))
    broadcaster.send(members(asked, incarnation=1))
    assert [kind for _, kind, _ in asked[:2]] == ["init_weight_transfer_engine"] * 2


@pytest.mark.parametrize("failing", ["init_weight_transfer_engine", "start_weight_update", "finish_weight_update"])
def test_a_broadcast_that_fails_still_gathers_all_and_the_next_makes_a_new_group(sender, failing):
    broadcaster, gathered = sender
    names = [name for name, _ in tiny_policy().model.named_parameters()]
    assert broadcaster.send(members([], failing=[failing])) is None
    assert gathered == names
    asked = []
    assert broadcaster.send(members(asked)) is not None
    assert asked[0][1] == "init_weight_transfer_engine"


def test_an_engine_makes_the_calls_that_vllm_has():
    from vllm.v1.engine.async_llm import AsyncLLM

    from rollart.exec.real.engines import backend

    engine = create_autospec(AsyncLLM, instance=True)
    for kind, info in (
        ("init_weight_transfer_engine", {"rank_offset": 1}),
        ("start_weight_update", None),
        ("update_weights", {"names": ["w"]}),
        ("finish_weight_update", None),
    ):
        asyncio.run(backend.transfer(engine, kind, info))
    assert engine.mock_calls == [
        call.shutdown_weight_transfer_engine(),
        call.init_weight_transfer_engine(backend.WeightTransferInitRequest(init_info={"rank_offset": 1})),
        call.start_weight_update(),
        call.update_weights(backend.WeightTransferUpdateRequest(update_info={"names": ["w"]})),
        call.finish_weight_update(),
        call.collective_rpc("pack_head"),
    ]


@pytest.mark.real
def test_engines_of_a_run_have_what_was_broadcast_also_after_one_was_killed(tmp_path, monkeypatch):
    original = launch.Launcher.engine_process
    monkeypatch.setattr(launch.Launcher, "engine_process", partialmethod(original, process=GlooEngine))
    monkeypatch.setattr(launch, "TrainerProcess", GlooTrainer)
    monkeypatch.setattr(assembly, "check_plan", lambda *_: None)
    asked, arrived = WeightStore.has_arrived, []
    monkeypatch.setattr(WeightStore, "has_arrived", lambda *of: arrived.append(asked(*of)) or arrived[-1])
    victims = {3: "GlooEngine"}

    def progress(version, _):
        if version in victims:
            kill(victims.pop(version))

    settings = [
        "training.batch_size=32",
        "steps=10",
        "policy.preset=one-off",
        "execution.weight_transfer=nccl",
    ]
    summary = api.run(api.load_scenario(LAPTOP, settings), out=tmp_path / "run", progress=progress).summary
    assert victims == {}
    assert summary["trajectories"]["trained"] == 10 * 32
    assert 0.0 < summary["logprob_gap"]["max"] < 1e-4
    assert any(isinstance(record, EngineLost) for _, _, record in records(tmp_path / "run/runlog.parquet"))
    # Two engines had the first two versions by broadcast, and those that were left had most others: one that a death
    # cuts short goes through the store.
    assert arrived[:4] == [True] * 4, arrived
    assert sum(arrived) > 4 + 3, arrived
    assert api.check(tmp_path / "run").ok
