"""Calibrated costs are the model's times a factor, and nothing else of them changes."""

from pathlib import Path

import pytest

from rollart import api
from rollart.costs.job_costs import engine_costs, training_costs
from rollart.domain.errors import ScenarioError

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"


def costs_of(*settings):
    job = api.load_scenario(LAPTOP, settings).job()
    return engine_costs(job, job.plan.placement.engine_groups[0]), training_costs(job)


def test_times_are_scaled_and_sizes_are_not():
    plain, trainer = costs_of("calibration={}")
    slow, slow_trainer = costs_of("calibration={engines: {turns: 3}, trainer: 5}")
    before, after = plain.decode(8, 400), slow.decode(8, 400)
    assert after == pytest.approx((3 * before.base_s, 3 * before.per_token_s, before.limit_tokens))
    assert slow.mixed_s(4, 100, [(16, 32)]) == pytest.approx(3 * plain.mixed_s(4, 100, [(16, 32)]))
    assert slow.kv_capacity_tokens == plain.kv_capacity_tokens
    assert slow.kv_bytes_per_token == plain.kv_bytes_per_token
    assert slow.weight_bytes == plain.weight_bytes
    assert slow_trainer.step([30, 40]) == pytest.approx([5 * part_s for part_s in trainer.step([30, 40])])


def test_a_pool_that_is_not_there_is_named():
    with pytest.raises(ScenarioError, match=r"calibration.engines: there is no pool 'turn'; .*turns"):
        costs_of("calibration={engines: {turn: 3}}")
