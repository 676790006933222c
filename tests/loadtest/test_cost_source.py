"""Host time by how an engine schedules."""

import pytest

from rollart.catalog.load import devices, models
from rollart.costs.host import host_time
from rollart.loadtest.cost_source import costs_from, host_of
from rollart.loadtest.deployment import Deployment

QWEN = Deployment(model=models()["Qwen3-32B"], device=devices()["H100"], tensor_parallel=8, max_num_seqs=256)


def iteration_s(batch, **how):
    return costs_from("compact", **how)(QWEN.shape).decode(batch, 1000 * batch).base_s


def test_only_an_engine_that_composes_ahead_hides_the_work_for_each_request():
    for batch in (1, 64):
        ahead, after = (iteration_s(batch, async_scheduling=it) for it in (True, False))
        assert after - ahead == pytest.approx(1e-3 + batch * 30e-6)


def test_sglang_has_a_host_time_of_its_own():
    assert host_of("sglang") == host_time("sglang")
    assert iteration_s(64, scheduler="sglang") == pytest.approx(iteration_s(64) + 64 * 10e-6)
