"""Trials simulated by processes, and remembered."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollart.planning import evaluator
from rollart.planning.evaluator import Evaluator, Workers
from rollart.planning.memory import Memory
from rollart.planning.simulation import simulate_trial
from rollart.scenario.load import load_scenario
from rollart.sched.placement.trial import Trials
from rollart.workload.reshaped import Reshape

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"


@pytest.fixture(scope="module")
def scenario():
    return load_scenario(LAPTOP, ["training.batch_size=16"])


def trials(scenario, *seeds):
    job = scenario.job()
    return [Trials(job=job, counted_steps=2, counted_trajectories=32).of(job.plan, seed) for seed in seeds]


def test_outcomes_come_in_order_and_are_remembered(scenario, tmp_path):
    told = []
    with Workers(1) as workers:
        memory = Memory(tmp_path / "m.sqlite")
        evaluate = Evaluator(scenario, workers, memory, lambda *done: told.append(done))
        one, two, again = evaluate(trials(scenario, 0, 1, 0))
        assert one == again
        assert one != two
        assert len(one.step_s) == len(one.cost) == 2
        assert one.trajectories == 32
        assert evaluate.simulated == 2
        assert told[-1] == (3, 3)
        later = Evaluator(scenario, workers, memory)
        assert later(trials(scenario, 1, 0)) == [two, one]
        assert later.simulated == 0
        memory.close()


def test_an_interrupted_search_keeps_what_was_done(scenario, tmp_path, monkeypatch):
    asked = []

    def interrupted(scenario, trial):
        asked.append(trial.job.seed)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return simulate_trial(scenario, trial)

    monkeypatch.setattr(evaluator, "simulate_trial", interrupted)
    memory = Memory(tmp_path / "m.sqlite")
    with Workers(1) as workers:
        with pytest.raises(KeyboardInterrupt):
            Evaluator(scenario, workers, memory)(trials(scenario, 0, 1, 2))
        Evaluator(scenario, workers, memory)(trials(scenario, 0, 1, 2))
    assert asked == [0, 1, 2, 2]
    memory.close()


@pytest.mark.slow
def test_more_processes_give_the_same(scenario):
    with Workers(1) as one, Workers(2) as two:
        assert Evaluator(scenario, two)(trials(scenario, 0, 1)) == Evaluator(scenario, one)(trials(scenario, 0, 1))


def test_a_plan_that_does_not_fit_is_a_failed_outcome(scenario):
    (trial,) = trials(scenario, 0)
    placement = trial.job.plan.placement
    group, *others = placement.engine_groups
    tight = replace(group, gpu_memory_utilization=1e-9)
    plan = replace(trial.job.plan, placement=replace(placement, engine_groups=(tight, *others)))
    outcome = simulate_trial(scenario, replace(trial, job=replace(trial.job, plan=plan)))
    assert outcome.failure is not None
    assert outcome.step_s == ()


def test_a_heavier_tail_takes_longer(scenario):
    (trial,) = trials(scenario, 0)
    longer = simulate_trial(scenario, replace(trial, reshape=Reshape(output_scale=2.0)))
    assert longer.mean_step_s > simulate_trial(scenario, trial).mean_step_s
