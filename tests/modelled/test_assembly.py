from dataclasses import replace

import pytest

from rollart.catalog.load import devices, models
from rollart.costs.job_costs import rollout_pools, slowest_path, training_costs
from rollart.costs.weights import bulk_link
from rollart.domain.cluster import Link, Pool, Protocol
from rollart.domain.errors import CapacityError
from rollart.domain.plan import Role
from rollart.modelled.assembly import engine_kinds, engine_sites, link_table
from rollart.sim.clock import SimulatedClock
from tests.modelled.toys import cluster, engines, job

SLOW = Link(bandwidth_bytes_per_s=2.5e9, latency_s=0.001, protocol=Protocol.TCP)
FAST = Link(bandwidth_bytes_per_s=50e9, protocol=Protocol.LOCAL)


def real_job(model="Qwen3-8B", groups=None, *, context_limit=32768, **fields):
    """A job on H800 (`train`, `fast`) and H20 (`cheap`), with a slow link between the two kinds."""
    h800, h20 = devices()["H800"], devices()["H20"]
    pools = {
        name: Pool(name=name, device=device, count=16, fabric=FAST)
        for name, device in (("train", h800), ("fast", h800), ("cheap", h20))
    }
    on = replace(cluster(), pools=pools, links={frozenset(("train", "cheap")): SLOW}, default_link=FAST)
    made = job(groups=groups or (engines(),), context_limit=context_limit, on=on, **fields)
    return replace(made, model=models()[model], models={"judge": models()["Qwen3-14B"]})


def test_engines_have_the_blocks_that_fit_beside_the_weights():
    (kind,) = engine_kinds(real_job(groups=(engines(block_size=32, max_num_seqs=7, scheduling_lag=1),)))
    config = kind.config
    assert config.kv_blocks == kind.costs.kv_capacity_tokens // 32
    # 80 GiB x 0.9 less 16.4 GB of weights leave about 60 GB, 147,456 bytes a token.
    assert 350_000 < kind.costs.kv_capacity_tokens < 440_000
    assert (config.block_size, config.max_num_seqs, config.scheduling_lag) == (32, 7, 1)


def test_a_judge_has_the_model_of_its_own():
    groups = (engines(), engines("judges", pool="cheap", role=Role.JUDGE, model="judge"))
    rollout, judge = engine_kinds(real_job(groups=groups))
    assert judge.costs.weight_bytes / rollout.costs.weight_bytes == pytest.approx(14.77 / 8.19, rel=0.01)


def test_a_model_that_does_not_fit_is_refused_with_its_numbers():
    with pytest.raises(CapacityError, match=r"Qwen3-235B-A22B.*H800.*TP"):
        engine_kinds(real_job("Qwen3-235B-A22B"))


def test_a_cache_below_the_context_limit_is_refused_with_its_numbers():
    groups = (engines("fast", gpu_memory_utilization=0.3),)
    with pytest.raises(CapacityError, match=r"'fast': KV cache for \d+ tokens .*context_limit is 131072; use a larger"):
        engine_kinds(real_job(groups=groups or (engines(),), context_limit=131072))


def test_a_training_step_that_does_not_fit_is_refused_with_its_numbers():
    with pytest.raises(CapacityError, match=r"training Qwen3-32B on 4 H800 .* needs [\d.]+ GB per device"):
        training_costs(real_job("Qwen3-32B"))


def test_weights_leave_over_the_slowest_path_to_a_rollout_pool():
    both = real_job(groups=(engines(), engines("cheap")))
    assert slowest_path(both, both.plan.placement.trainer, rollout_pools(both)) == bulk_link(SLOW)
    alone = real_job()
    assert slowest_path(alone, alone.plan.placement.trainer, rollout_pools(alone)) == FAST
    judged = real_job(groups=(engines(), engines("judges", pool="cheap", role=Role.JUDGE)))
    assert slowest_path(judged, judged.plan.placement.trainer, rollout_pools(judged)) == FAST


def test_every_engine_pulls_over_the_link_of_its_pool():
    made = real_job(groups=(engines(engines=2), engines("cheap")))
    sites = engine_sites(made, engine_kinds(made))
    assert [site.device.name for site in sites] == ["H800", "H800", "H20"]
    assert [site.pull_link for site in sites] == [FAST, FAST, bulk_link(SLOW)]
    assert {round(site.weight_bytes / 1e9, 1) for site in sites} == {16.4}


def test_one_link_serves_two_pools_in_both_directions():
    between, links = link_table(real_job(), ["fast", "cheap", "fast"], SimulatedClock())
    assert between(0, 1) is between(1, 0) is between(1, 2)
    assert between(0, 2) is not between(0, 1)
    assert sorted(links) == ["cheap-fast", "fast-fast"]
