"""Which plans can have their weights broadcast."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray")

from rollart import api
from rollart.domain.errors import ScenarioError
from rollart.exec.real.weights.select import check_plan

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
ENGINES = ["cluster.pools.turns.device=H20", "cluster.pools.answers.device=H20"]
GPUS = [*ENGINES, "cluster.pools.training.device=H800"]


def check(*settings):
    scenario = api.load_scenario(LAPTOP, ["execution.weight_transfer=nccl", *settings])
    check_plan(scenario.job(), scenario.execution())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "nccl needs GPU engines; pool 'turns' has device CPU core"),
        (ENGINES, "nccl needs a GPU trainer; pool 'training' has device CPU core"),
        (GPUS, "transport: broadcast and suspend: true, not store and true"),
        ([*GPUS, "policy.preset=one-off", "policy.sync={suspend: false}"], "not broadcast and false"),
    ],
    ids=["engines", "trainer", "store", "in flight"],
)
def test_a_plan_that_no_broadcast_reaches_is_refused(settings, message):
    with pytest.raises(ScenarioError, match=message):
        check(*settings)


def test_engines_that_share_the_trainers_devices_are_refused():
    scenario = api.load_scenario(LAPTOP, ["execution.weight_transfer=nccl", *GPUS, "policy.preset=one-off"])
    job = scenario.job()
    groups = tuple(replace(group, time_shared=True) for group in job.plan.placement.engine_groups)
    plan = replace(job.plan, placement=replace(job.plan.placement, engine_groups=groups))
    with pytest.raises(ScenarioError, match="devices of their own; engine group 'turns' is time_shared"):
        check_plan(replace(job, plan=plan), scenario.execution())


def test_gpus_that_stand_still_are_taken():
    check(*GPUS, "policy.preset=one-off")


def test_other_ways_take_any_plan():
    check("execution.weight_transfer=ray")
