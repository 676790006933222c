"""How prefill and decode engines get together, and what is refused before anything starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart import api
from rollart.domain.errors import CapacityError, InputError
from rollart.exec.real.engines.connectors import KvTransfer, connector_of
from rollart.scenario.scenario import Scenario

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
PAIR = ("placement.engines.turns.role=prefill", "placement.engines.answers.role=decode", "placement.affinity={}")


def pair(*settings: str) -> Scenario:
    """The laptop's scenario, with one engine that prefills for the other."""
    return api.load_scenario(LAPTOP, [*PAIR, *settings])


def chosen(scenario: Scenario) -> str | None:
    return connector_of(scenario.job(), scenario.execution())


def test_a_connector_is_chosen_where_engines_work_in_pairs() -> None:
    assert chosen(api.load_scenario(LAPTOP)) is None
    assert chosen(pair()) == "folder"


def on_gpus(scenario: Scenario, *pools: str) -> str | None:
    job = scenario.job()
    changed = {
        name: replace(pool, device=replace(pool.device, kind="gpu")) if name in pools else pool
        for name, pool in job.cluster.pools.items()
    }
    return connector_of(replace(job, cluster=replace(job.cluster, pools=changed)), scenario.execution())


def test_what_real_engines_cannot_do_is_one_line() -> None:
    with pytest.raises(CapacityError, match="real engines send no KV back yet; must be recompute"):
        chosen(pair("placement.kv_return=transfer"))
    with pytest.raises(CapacityError, match="a block_size of 32 and 64; with the connector folder it must be the same"):
        chosen(pair("placement.engines.answers.block_size=64"))
    with pytest.raises(CapacityError, match="are on CPUs and GPUs; must be of one kind"):
        on_gpus(pair(), "turns")


def test_nixl_is_asked_for_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match="nixl needs the package nixl, which is not installed"):
        on_gpus(pair(), "turns", "answers")
    assert on_gpus(pair("execution.kv_connector=folder"), "turns", "answers") == "folder"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert on_gpus(pair(), "turns", "answers") == "nixl"
    with pytest.raises(CapacityError, match=r"policy\.sync\.suspend: must be true"):
        on_gpus(pair("policy.sync.suspend=false"), "turns", "answers")


def test_vllm_is_told_in_its_own_words() -> None:
    told = KvTransfer(connector="nixl", prefills=True, folder="/dev/shm/x").vllm_config()
    assert told == {"kv_connector": "NixlConnector", "kv_role": "kv_producer", "kv_load_failure_policy": "recompute"}
    told = KvTransfer(connector="folder", prefills=False, folder="/dev/shm/x").vllm_config()
    assert (told["kv_role"], told["kv_connector_extra_config"]) == ("kv_consumer", {"folder": "/dev/shm/x"})
