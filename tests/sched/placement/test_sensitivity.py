"""Other worlds, with a solver and a simulator that are formulas."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart.domain.errors import CapacityError
from rollart.domain.planning import Objective
from rollart.scenario.load import load_scenario
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.report import Candidate, Prediction, SolveReport
from rollart.sched.placement.sensitivity import Effect, Sensitivity, predicted_sensitivity, simulated_sensitivity
from rollart.sched.placement.trial import Outcome, Trials
from rollart.sched.placement.variations import variations, with_more_staleness
from rollart.sched.presets import resolve

PAPER = Path(__file__).resolve().parents[3] / "experiments/scenarios/paper-128.yaml"


@pytest.fixture(scope="module")
def job():
    return load_scenario(PAPER).job()


def candidate(plan, step_s):
    predicted = Prediction(
        step_s=step_s,
        cost_per_step=1.0,
        rollout_s=step_s,
        training_s=1.0,
        update_s=0.0,
        bottleneck="",
        pools={},
        shares={},
    )
    return Candidate(plan=plan, predicted=predicted, value=step_s)


def ideal_s(job, reshape):
    """Step time of the best plan of a world: outputs over devices."""
    return 10_000.0 * reshape.output_scale / sum(pool.count for pool in job.cluster.pools.values())


def solve(job, reshape):
    """The best plan of a world says which one it is for, by its environment slots."""
    slots = round(1000 * reshape.output_scale)
    plan = replace(job.plan, placement=replace(job.plan.placement, environment_slots=slots))
    return SolveReport(
        status="optimal",
        objective=Objective.STEP_TIME,
        candidates=(candidate(plan, ideal_s(job, reshape)),),
        bound=1.0,
        floor=1.0,
        wall_s=0.0,
        seed=0,
        binding=(),
    )


def test_worlds_differ_in_one_thing(job):
    found = {variation.name: variation for variation in variations(job)}
    assert list(found) == [
        "one more node of h800 (8 devices)",
        "one more node of h20 (8 devices)",
        "tails twice as heavy",
        "links between pools half as fast",
        "staleness bound + 1",
    ]
    more = found["one more node of h20 (8 devices)"].job.cluster.pools
    assert {name: pool.count for name, pool in more.items()} == {"h800": 96, "h20": 40}
    slow = found["links between pools half as fast"].job.cluster
    assert slow.link("h800", "h20").bandwidth_bytes_per_s == job.cluster.link("h800", "h20").bandwidth_bytes_per_s / 2
    assert slow.pools == job.cluster.pools
    assert found["tails twice as heavy"].job == job


def test_more_staleness_is_admitted_too():
    parts = with_more_staleness(resolve("rollart")).parts
    assert (parts["admission"]["lookahead"], parts["staleness"]["bound"]) == (2, 2)


def test_a_policy_without_staleness_has_none_to_add(job):
    synchronous = replace(job, plan=replace(job.plan, policy=resolve("sync+")))
    assert "staleness bound + 1" not in [variation.name for variation in variations(synchronous)]


def test_the_model_says_what_more_devices_bring(job):
    table = predicted_sensitivity(job, 78.125, solve)
    assert [round(effect.predicted, 2) for effect in table.effects] == [73.53, 73.53, 78.12, 78.12, 78.12]
    assert all(effect.kept is None for effect in table.effects)


def test_what_does_not_fit_has_no_figures(job):
    def refuse(*_):
        raise CapacityError("nothing fits")

    assert {effect.predicted for effect in predicted_sensitivity(job, 1.0, refuse).effects} == {None}


def test_what_was_not_solved_in_time_has_no_figures(job):
    def late(job, reshape):
        return replace(solve(job, reshape), status="time limit")

    assert {effect.predicted for effect in predicted_sensitivity(job, 1.0, late).effects} == {None}
    assert {effect.predicted for effect in predicted_sensitivity(job, 1.0, lambda *_: None).effects} == {None}


def test_the_kept_plan_is_simulated_in_every_world_that_changes_it(job):
    """A plan that was made for other lengths is 10 % worse for each doubling or halving."""
    asked = []

    def evaluate(trials):
        asked.extend(trials)
        outcomes = []
        for trial in trials:
            made_for = trial.job.plan.placement.environment_slots / 1000
            mismatch = max(made_for / trial.reshape.output_scale, trial.reshape.output_scale / made_for)
            step_s = 80.0 * trial.reshape.output_scale * (1 + 0.1 * (mismatch - 1))
            outcomes.append(Outcome(step_s=(step_s,), cost=(1.0,), trajectories=1))
        return outcomes

    winner = solve(job, Trials(job=job).reshape).best
    table = simulated_sensitivity(job, winner, Judge(trials=Trials(job=job)), solve, evaluate)
    assert table.simulated == pytest.approx(80.0)
    assert all(trial.job.seed == 0 for trial in asked)
    by_scale = dict(table.drifts)
    assert by_scale[2.0].kept == pytest.approx(80 * 2 * 1.1)
    assert by_scale[2.0].replanned == pytest.approx(80 * 2)
    # 1.4 costs 4 %, 2 costs 10 %, 0.7 costs 4.3 %, 0.5 costs 10 %.
    assert table.plan_again(maximised=False) == (0.5, 2.0)


def test_nothing_is_worth_it_where_plans_are_alike():
    alike = Effect(variation="", predicted=1.0, kept=1.0, replanned=1.0)
    table = Sensitivity(predicted=1.0, simulated=1.0, effects=(), drifts=((0.5, alike), (2.0, alike)))
    assert table.plan_again(maximised=False) == (None, None)
