"""The judge, with simulators that are formulas."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from rollart.domain.planning import Limits, Objective
from rollart.scenario.load import load_scenario
from rollart.sched.placement.judge import FRESH_SEED, Allowance, Judge
from rollart.sched.placement.trial import Outcome, Trials

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"


@pytest.fixture(scope="module")
def job():
    return load_scenario(LAPTOP).job()


def plans(job, count):
    """Plans that a simulator can tell apart, by their environment slots."""
    placement = job.plan.placement
    return [replace(job.plan, placement=replace(placement, environment_slots=place + 1)) for place in range(count)]


def outcome(step_s, cost=1.0):
    return Outcome(step_s=(step_s,), cost=(cost,), trajectories=100)


class Simulator:
    """Step time by place and seed; remembers what it was asked."""

    def __init__(self, formula):
        self.formula = formula
        self.asked = []

    def __call__(self, trials):
        keys = [(trial.job.plan.placement.environment_slots - 1, trial.job.seed) for trial in trials]
        self.asked.extend(keys)
        return [self.formula(place, seed) for place, seed in keys]

    def seeds(self, place):
        return [seed for asked, seed in self.asked if asked == place]


def test_the_fastest_wins_and_is_judged_with_fresh_seeds(job):
    simulator = Simulator(lambda place, seed: outcome(10.0 + abs(place - 2) + seed % 2))
    verdict = Judge(trials=Trials(job=job)).verdict(plans(job, 4), simulator)
    assert verdict.places[0] == 2
    assert verdict.clear
    assert simulator.seeds(2) == [0, 1, FRESH_SEED, FRESH_SEED + 1, FRESH_SEED + 2]
    assert [each.step_s for each in verdict.fresh] == [(10.0,), (11.0,), (10.0,)]
    assert verdict.simulations == len(simulator.asked)


def test_all_plans_meet_the_same_seeds(job):
    simulator = Simulator(lambda place, _: outcome(10.0 + place))
    Judge(trials=Trials(job=job), fresh_repetitions=1).verdict(plans(job, 5), simulator)
    assert [simulator.seeds(place) for place in range(1, 5)] == [[0, 1], [0, 1], [0], [0]]


def test_repetitions_go_to_those_that_are_close(job):
    luck = random.Random(7)
    noise = {(place, seed): luck.gauss(0.0, 0.02) for place in range(4) for seed in range(64)}

    def formula(place, seed):
        return outcome((10.0, 10.3, 14.0, 15.0)[place] * math.exp(noise.get((place, seed), 0.0)))

    simulator = Simulator(formula)
    verdict = Judge(trials=Trials(job=job), most_repetitions=64).verdict(plans(job, 4), simulator)
    assert verdict.places[0] == 0
    assert len(simulator.seeds(1)) > len(simulator.seeds(2))
    assert len(simulator.seeds(3)) <= 4


def test_one_seed_dismisses_only_what_is_far_behind(job):
    simulator = Simulator(lambda place, _: outcome((10.0, 10.5, 10.8, 20.0)[place]))
    Judge(trials=Trials(job=job), fresh_repetitions=0).verdict(plans(job, 4), simulator)
    assert [len(simulator.seeds(place)) for place in range(4)] == [2, 2, 2, 1]


def test_what_cannot_be_told_apart_is_said(job):
    simulator = Simulator(lambda place, seed: outcome((10.0, 12.0)[(place + seed) % 2]))
    verdict = Judge(trials=Trials(job=job), most_repetitions=4).verdict(plans(job, 2), simulator)
    assert not verdict.clear
    assert verdict.winner.left_in is None


def test_equal_plans_need_no_more_than_the_first_round(job):
    simulator = Simulator(lambda _, seed: outcome(10.0 + seed))
    verdict = Judge(trials=Trials(job=job), fresh_repetitions=0).verdict(plans(job, 3), simulator)
    assert (verdict.clear, verdict.equally_good, verdict.simulations) == (True, 2, 6)
    assert verdict.places == (0, 1, 2)


def test_a_plan_alone_is_simulated_all_the_same(job):
    verdict = Judge(trials=Trials(job=job)).verdict(plans(job, 1), Simulator(lambda *_: outcome(10.0)))
    assert verdict.simulations == 1 + 3


def test_a_plan_that_fails_or_breaks_a_limit_never_wins(job):
    def formula(place, _):
        if place == 0:
            return Outcome(step_s=(), cost=(), trajectories=0, failure="no engine is left")
        return outcome((0.0, 5.0, 9.0)[place], cost=(0.0, 8.0, 3.0)[place])

    judge = Judge(trials=Trials(job=job), limits=Limits(cost_per_step=4.0))
    assert judge.verdict(plans(job, 3), Simulator(formula)).places[0] == 2


@pytest.mark.parametrize(
    ("objective", "best"),
    [(Objective.STEP_TIME, 0), (Objective.COST, 1), (Objective.THROUGHPUT_PER_COST, 1)],
)
def test_the_objective_decides(job, objective, best):
    simulator = Simulator(lambda place, _: outcome((5.0, 9.0)[place], cost=(8.0, 3.0)[place]))
    judge = Judge(trials=Trials(job=job), objective=objective)
    assert judge.verdict(plans(job, 2), simulator).places[0] == best


def test_penalties_count(job):
    simulator = Simulator(lambda place, _: outcome((10.0, 9.9)[place]))
    assert Judge(trials=Trials(job=job)).verdict(plans(job, 2), simulator, [1.0, 1.1]).places[0] == 0


def test_losses_behind_the_winner_are_relative(job):
    simulator = Simulator(lambda place, seed: outcome((10.0, 12.0)[place] * (1 + seed)))
    verdict = Judge(trials=Trials(job=job)).verdict(plans(job, 2), simulator)
    assert [standing.behind for standing in verdict.standings] == pytest.approx([0.0, 0.2])
    assert verdict.standings[1].left_in == 2


def test_a_trial_pays_for_the_devices_of_its_plan(job):
    trainer = replace(job.plan.placement.trainer, pool="training", devices=1)
    alone = replace(job.plan, placement=replace(job.plan.placement, trainer=trainer))
    trial = Trials(job=job, warmup_steps=3, counted_steps=5).of(alone, 9)
    devices = {name: pool.count for name, pool in trial.job.cluster.pools.items()}
    assert devices == {"turns": 1, "answers": 1, "training": 1}
    assert (trial.job.seed, trial.job.warmup_steps, trial.job.steps) == (9, 3, 8)


def test_outcomes_have_every_objective():
    found = Outcome(step_s=(10.0, 20.0), cost=(1.0, 3.0), trajectories=80)
    assert found.value(Objective.STEP_TIME) == 15.0
    assert found.value(Objective.COST) == 2.0
    assert found.value(Objective.THROUGHPUT_PER_COST) == 20.0
    assert found.values(Objective.THROUGHPUT_PER_COST) == (40.0, 40.0 / 3)


@pytest.mark.parametrize(("batch", "counted"), [(512, 4), (64, 4), (40, 8), (24, 12), (8, 16), (1, 16)])
def test_small_batches_are_simulated_for_more_steps(job, batch, counted):
    small = replace(job, training=replace(job.training, batch_size=batch))
    trial = Trials(job=small).of(small.plan, 0)
    assert trial.job.steps - trial.job.warmup_steps == counted
    assert Trials(job=small, counted_steps=20).of(small.plan, 0).job.steps == trial.job.warmup_steps + 20


class Watch:
    """A simulator whose simulations take `each_s`, one after the other, and the allowance that they use up."""

    def __init__(self, each_s, limit_s):
        self.each_s = each_s
        self.limit_s = limit_s
        self.time_s = 0.0
        self.inner = Simulator(lambda place, seed: outcome(10.0 + 0.001 * place + 0.5 * ((seed + place) % 2)))
        self.known = set()

    def __call__(self, trials):
        for trial in trials:
            key = (trial.job.plan.placement.environment_slots, trial.job.seed)
            self.time_s += 0.0 if key in self.known else self.each_s
            self.known.add(key)
        return self.inner(trials)

    def allowance(self):
        began_s = self.time_s
        return Allowance(lambda: self.time_s - began_s, self.limit_s)


def judged(job, each_s, limit_s):
    watch = Watch(each_s, limit_s)
    judge = Judge(trials=Trials(job=job), allowance=watch.allowance)
    return watch, judge.verdict(plans(job, 4), watch)


def test_with_time_enough_nothing_is_left_out(job):
    watch, verdict = judged(job, 1.0, 1000.0)
    assert not verdict.out_of_time
    assert len(verdict.places) == 4
    assert len(verdict.fresh) == 3
    assert watch.time_s < 1000.0


@pytest.mark.parametrize(("limit_s", "plans_judged", "fresh"), [(1.0, 1, 1), (2.5, 2, 1), (4.0, 4, 1), (7.0, 4, 3)])
def test_what_would_not_end_in_time_is_not_begun(job, limit_s, plans_judged, fresh):
    watch, verdict = judged(job, 1.0, limit_s)
    assert verdict.out_of_time
    assert (len(verdict.places), len(verdict.fresh)) == (plans_judged, fresh)
    assert watch.time_s <= limit_s + 1.0
