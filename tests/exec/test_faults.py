"""Faults on fake workers, each with ten lucks: nothing is lost, nothing is trained twice, no step is wedged."""

import random
from dataclasses import dataclass, replace

import pytest

from rollart.domain.events import EngineLost, EnvironmentFailed, RewardFailed, TrainerLost, TrajectoryScored
from rollart.domain.job import Faults, Job, Preemption
from rollart.domain.trajectory import Cause
from rollart.workload.trajectory import StepOutcome
from tests.exec.runs import run, toy_models
from tests.exec.test_resume import assert_whole
from tests.modelled.toys import ToyWorkload, engines, job, spec, task

LUCKS = range(10)
PATIENT = {"recovery": {"step_timeout_s": 8.0, "reset_timeout_s": 8.0, "reward_timeout_s": 4.0}}
CHECKPOINTS_SELDOM = {"recovery": PATIENT["recovery"] | {"checkpoint_every": 2}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job and what it works on."""

    job: Job
    workload: ToyWorkload


def case(luck: int, faults: Faults, *, trouble: float = 0.0, parts=PATIENT, steps: int = 4) -> Case:
    """Twelve trajectories of three turns a step, on two engines; `trouble`: share of steps that crash or hang."""

    def drawn(*key):
        draw = random.Random(f"{luck}/{key}")
        outcomes = [
            draw.choice([StepOutcome.FAILED, StepOutcome.TIMEOUT]) if draw.random() < trouble else StepOutcome.OK
            for _ in range(3)
        ]
        return spec(
            key=key,
            outputs=[draw.randint(2, 12) for _ in range(3)],
            env_s=[100.0 if each is StepOutcome.TIMEOUT else draw.uniform(0.1, 2.0) for each in outcomes],
            env_outcome=outcomes,
            reward_s=draw.uniform(0.1, 1.0),
        )

    made = job(
        policy="rollart",
        parts=parts,
        tasks=(task(group_size=4),),
        groups=(engines(engines=2),),
        batch_size=12,
        steps=steps,
        faults=faults,
        seed=luck,
    )
    return Case(job=made, workload=ToyWorkload(drawn))


def finish(tried: Case, *, speed: float | None = None):
    """Run it under the logical clock, or by the wall clock; a sound log with every step done."""
    finished = run(toy_models(tried.job, tried.workload), speed=speed)
    assert_whole(tried, finished)
    return finished


def count(runs, kind) -> int:
    """Records of a kind in all runs."""
    return sum(len(finished.of(kind)) for finished in runs)


def killed_engine(luck: int) -> Case:
    draw = random.Random(luck)
    preemptions = tuple(
        Preemption(time_s=draw.uniform(1.0, 30.0), engine=draw.randrange(2), away_s=draw.choice([0.1, 5.0]))
        for _ in range(3)
    )
    return case(luck, Faults(preemptions=preemptions, engine_restart_s=2.0))


def test_a_killed_engine_is_survived():
    runs = [finish(killed_engine(luck)) for luck in LUCKS]
    assert count(runs, EngineLost) >= 20


def test_a_killed_engine_is_survived_by_the_wall_clock():
    runs = [finish(killed_engine(luck), speed=500.0) for luck in LUCKS]
    assert count(runs, EngineLost) >= 10


def test_environments_that_crash_or_hang_are_survived():
    runs = [finish(case(luck, Faults(), trouble=0.1)) for luck in LUCKS]
    causes = [event.cause for finished in runs for _, event in finished.of(EnvironmentFailed)]
    assert min(causes.count(Cause.ERROR), causes.count(Cause.TIMEOUT)) >= 10


@pytest.mark.parametrize("parts", [PATIENT, CHECKPOINTS_SELDOM], ids=["every step", "every second step"])
def test_a_killed_trainer_is_survived(parts):
    faults = Faults(trainer_mtbf_s=10.0, trainer_restart_s=1.0)
    runs = [finish(case(luck, faults, parts=parts)) for luck in LUCKS]
    assert count(runs, TrainerLost) >= 10


def test_a_killed_trainer_is_survived_by_the_wall_clock():
    faults = Faults(trainer_mtbf_s=10.0, trainer_restart_s=1.0)
    runs = [finish(case(luck, faults, parts=CHECKPOINTS_SELDOM), speed=500.0) for luck in LUCKS]
    assert count(runs, TrainerLost) >= 10


@pytest.mark.parametrize(
    "faults",
    [Faults(reward_failed=0.5), Faults(reward_late=0.5), Faults(reward_garbage=0.5)],
    ids=["fails", "late", "garbage"],
)
def test_a_reward_endpoint_that_misbehaves_half_of_the_time_is_survived(faults):
    runs = [finish(case(luck, faults)) for luck in LUCKS]
    bad = count(runs, RewardFailed) + sum(
        event.reward == float("inf") for finished in runs for _, event in finished.of(TrajectoryScored)
    )
    good = count(runs, TrajectoryScored)
    assert bad >= 0.3 * good


def test_all_faults_at_once_are_survived():
    faults = Faults(
        engine_mtbf_s=30.0, engine_restart_s=2.0, trainer_mtbf_s=15.0, trainer_restart_s=1.0, reward_failed=0.2
    )
    for luck in LUCKS:
        tried = case(luck, faults, trouble=0.05, parts=CHECKPOINTS_SELDOM)
        finish(replace(tried, job=replace(tried.job, steps=3)))
