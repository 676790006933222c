"""Ranks that share experts: what an iteration of theirs costs, and which engines a deployment gets."""

import pytest

from rollart.catalog.load import devices, models
from rollart.costs.engine_shape import EngineShape
from rollart.costs.host import HostTime
from rollart.costs.roofline import RooflineEngine
from rollart.domain.errors import InputError
from rollart.loadtest.cost_source import costs_from
from rollart.loadtest.deployment import Deployment, weight_precision
from rollart.loadtest.expert_ranks import ExpertRanks
from rollart.serving import Engine
from rollart.serving.lockstep import LockstepEngine, RankWork

H100 = devices()["H100"]
MOE = models()["Qwen3-30B-A3B"]
DENSE = models()["Llama-3.1-8B"]


def ranks(count=2, **more):
    return ExpertRanks(EngineShape(model=MOE, device=H100), count, RooflineEngine, **more)


def test_an_idle_rank_costs_nothing_of_its_own():
    """The experts see the same tokens; the busy rank's attention is all that is left."""
    busy = RankWork(32, 32_000, [])
    assert ranks().iteration_s([busy, RankWork(0, 0, [])]) == ranks().iteration_s([busy])


def test_the_slowest_rank_holds_the_others_up():
    model = ranks()
    even = model.iteration_s([RankWork(64, 64_000, [])] * 2)
    uneven = model.iteration_s([RankWork(64, 1_000, []), RankWork(64, 127_000, [])])
    assert uneven > even
    assert model.iteration_s([RankWork(64, 64_000, []), RankWork(64, 1_000, [])]) == even


def test_one_device_less_work_than_all_experts_alone():
    """Two ranks read half of the experts each: less than one engine that reads them all for as many tokens."""
    alone = RooflineEngine(EngineShape(model=MOE, device=H100))
    together = ranks().iteration_s([RankWork(64, 64_000, [])] * 2)
    assert together < alone.mixed_s(128, 128_000, [])
    assert together > 0.5 * alone.mixed_s(128, 128_000, [])


def test_a_dearer_exchange_is_paid_twice_a_layer():
    work = [RankWork(8, 800, [])] * 2
    extra = ranks(exchange_extra_s=1e-4).iteration_s(work) - ranks().iteration_s(work)
    assert extra == pytest.approx(2 * MOE.layers * 1e-4)


def test_a_rank_holds_more_kv_than_an_engine_with_all_experts():
    assert ranks().kv_capacity_tokens > RooflineEngine(EngineShape(model=MOE, device=H100)).kv_capacity_tokens


def test_a_dense_model_has_no_experts_to_share():
    with pytest.raises(InputError, match=r"Llama-3.1-8B: data parallel ranks in step need experts and TP 1"):
        ExpertRanks(EngineShape(model=DENSE, device=H100), 2, RooflineEngine)


@pytest.mark.parametrize(
    ("model", "data_parallel", "kinds"),
    [(MOE, 2, [LockstepEngine] * 3), (DENSE, 2, [Engine] * 6), (MOE, 1, [Engine] * 3)],
)
def test_a_deployment_makes_its_engines(model, data_parallel, kinds):
    engines = Deployment(model=model, device=H100, data_parallel=data_parallel).engines(3)
    assert [type(engine) for engine in engines] == kinds


@pytest.mark.parametrize(
    ("device", "batched", "seqs"), [("H100", 8192, 1024), ("A100", 2048, 256), ("L40S", 2048, 256)]
)
def test_limits_are_those_a_server_starts_with(device, batched, seqs):
    shape = Deployment(model=DENSE, device=devices()[device]).shape
    assert (shape.max_num_batched_tokens, shape.max_num_seqs) == (batched, seqs)


def test_few_tokens_an_iteration_limit_the_requests_too():
    assert Deployment(model=DENSE, device=H100, max_num_batched_tokens=100).shape.max_num_seqs == 100


def test_host_time_is_added_to_every_iteration():
    shape = EngineShape(model=DENSE, device=H100)
    for source in ("roofline", "compact"):
        slow = costs_from(source, host=HostTime(5e-3, 0.0))(shape)
        fast = costs_from(source, host=HostTime(1e-3, 0.0))(shape)
        assert slow.mixed_s(4, 400, []) - fast.mixed_s(4, 400, []) == pytest.approx(4e-3)


def test_names_of_precisions():
    assert weight_precision("fp4") == "mxfp4"
    with pytest.raises(InputError, match="precision 'fp5' is not known"):
        weight_precision("fp5")
