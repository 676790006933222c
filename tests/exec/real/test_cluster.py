"""What workers ask of Ray, and what a cluster lacks."""

from pathlib import Path

import pytest

from rollart.catalog.load import devices_with
from rollart.domain.cluster import Pool
from rollart.domain.errors import CapacityError, InputError

pytest.importorskip("ray")

from rollart.exec.real.cluster import connect, demand, disconnect, lacking, resources

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"


def pool(name="fast", device="H800", count=8):
    return Pool(name=name, device=devices_with({})[device], count=count)


def test_a_pool_is_a_custom_resource_and_gpus():
    assert demand(pool(), 4, {"pool:fast": 8.0, "GPU": 8.0}) == {
        "num_cpus": 0,
        "num_gpus": 4,
        "resources": {"pool:fast": 4},
    }
    assert demand(pool(device="CPU core"), 1, {"pool:fast": 2.0}) == {"num_cpus": 0, "resources": {"pool:fast": 1}}


def test_an_accelerator_type_stands_for_a_pool_that_has_no_resource():
    assert demand(pool(), 2, {"accelerator_type:H800": 1.0})["resources"] == {"accelerator_type:H800": 0.001}
    with pytest.raises(CapacityError, match="neither the resource 'pool:fast' nor 'accelerator_type:H800'"):
        demand(pool(), 2, {"CPU": 8.0})


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_several_nodes_on_one_machine_bring_their_pools():
    from ray.cluster_utils import Cluster as Nodes

    from rollart import api

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"pool:training": 1}})
    try:
        nodes.add_node(num_cpus=1, resources={"pool:turns": 1})
        job = api.load_scenario(LAPTOP).job()
        connect(None, nodes.address)
        assert {name: resources()[name] for name in ("pool:turns", "pool:training")} == {
            "pool:turns": 1.0,
            "pool:training": 1.0,
        }
        found = lacking(job.cluster, {"turns": 1, "training": 2, "answers": 1})
        assert found["turns"] is None
        assert found["training"] == "pool 'training': 2 devices are needed; the cluster has 1, and 0 GPUs"
        assert "neither the resource 'pool:answers'" in found["answers"]
    finally:
        disconnect()
        nodes.shutdown()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:port", "127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_said_at_once(address):
    with pytest.raises(InputError, match=f"--address {address}: no Ray cluster answers"):
        connect(None, address)
