"""Bound and floor: no enumerated plan's prediction beats the one, no simulation the other."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from rollart.domain.planning import Objective
from rollart.scenario.load import load_scenario
from rollart.sched.placement.candidates import candidate_of
from rollart.sched.placement.floor import floor_of
from rollart.sched.placement.ground import ground_of
from rollart.sched.placement.problem import ProblemData
from rollart.sched.placement.rent import rented
from rollart.sched.placement.solve import solve
from rollart.sim import simulate
from tests.sched.placement.worlds import FOLDERS, problem, tick


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["rollart", "areal", "one-off", "sync+"])
def test_nothing_beats_bound_and_floor(policy):
    asked = problem("duo", f"policy={policy}")
    report = solve(asked, clock=tick(), top=1)
    data = ProblemData(asked)
    grid = ground_of(asked.job, asked.workload).grid
    generator = np.random.default_rng(0)
    for _ in range(12):
        plan = grid.drawn(generator)
        expected = candidate_of(data.of_plan(plan), plan, Objective.STEP_TIME)
        assert expected is None or expected.value >= report.bound * (1 - 1e-6)
        job = replace(rented(asked.job, plan), steps=6, warmup_steps=2)
        steps = simulate(job, asked.workload).statistics.counted_steps
        assert fmean(step.duration_s for step in steps) >= report.floor


@pytest.mark.slow
def test_the_floor_of_cost_holds_for_the_cheapest_plan():
    asked = problem("duo")
    report = solve(asked, clock=tick(), top=1, objective=Objective.COST)
    scenario = load_scenario(FOLDERS["duo"] / "duo.yaml")
    for seed in (0, 1):
        job = replace(rented(asked.job, report.best.plan), seed=seed, steps=6, warmup_steps=2)
        steps = simulate(job, scenario.workload(seed)).statistics.counted_steps
        assert fmean(step.usage.cost for step in steps) >= report.floor


def test_the_floor_is_a_part_of_what_is_predicted():
    asked = problem("duo")
    data = ProblemData(asked)
    own = candidate_of(data.of_plan(asked.job.plan), asked.job.plan, Objective.STEP_TIME)
    floor_s = floor_of(data, Objective.STEP_TIME, tick())
    assert 0.3 * own.value < floor_s < own.value
