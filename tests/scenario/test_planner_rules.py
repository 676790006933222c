"""The planner section: pins, bounds, and what is refused."""

import pytest

from rollart.domain.errors import ScenarioError
from rollart.domain.plan import Role
from rollart.domain.planning import Objective, Range, Rules
from rollart.scenario.load import load_scenario
from rollart.scenario.planner_rules import rules_of

PAPER = "experiments/scenarios/paper-128.yaml"


def rules(*settings: str) -> Rules:
    return rules_of(load_scenario(PAPER, settings).document.planner)


def problem(*settings: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(PAPER, settings).job()
    return str(caught.value)


def test_nothing_is_asked_by_default():
    found = rules()
    assert found.objective is Objective.STEP_TIME
    assert found.roles == (Role.BOTH,)
    assert (found.trainer.pools, found.trainer.devices, found.engines, found.tasks) == (None, None, (), ())
    assert found.staleness is None


def test_a_number_pins_and_a_mapping_bounds():
    found = rules(
        "planner={trainer: {pools: [h800], devices: 32}, staleness: {most: 3}, "
        "engines: [{pool: h20, tensor_parallel: 8, engines: 0}], tasks: [{task: SWE-bench, pool: h20, share: 0}]}"
    )
    assert found.trainer.pools == ("h800",)
    assert found.trainer.devices == Range(least=32, most=32)
    assert found.staleness == Range(least=0, most=3)
    assert (found.engines[0].pool, found.engines[0].tensor_parallel) == ("h20", 8)
    assert found.engines[0].engines == Range(least=0, most=0)
    assert found.tasks[0].share == Range(least=0, most=0)


def test_pairs_of_prefill_and_decode_are_asked_for():
    assert rules("planner.disaggregate=true").roles == (Role.BOTH, Role.PREFILL, Role.DECODE)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("planner.trainer={pools: [h80]}", "planner.trainer.pools: there is no pool 'h80'; did you mean h800 or h20?"),
        ("planner.engines=[{pool: a100}]", "planner.engines.0.pool: there is no pool 'a100'"),
        ("planner.tasks=[{task: SWE, share: 1}]", "planner.tasks.0.task: there is no task 'SWE'"),
        ("planner.trainer={devices: {least: 9, most: 8}}", "least 9 is above most 8"),
        ("planner.objective=fame", "one of step_time, cost, throughput_per_cost"),
        ("planner.hourly_budget=0", "a number > 0"),
    ],
)
def test_what_does_not_fit_is_named(setting, message):
    assert message in problem(setting)
