"""What counts as noticed and as recovered, on events that a test makes up."""

from collections import defaultdict

import pytest

from experiments.chaos import CALM_STEPS, Chaos, Fault, Finished
from rollart.domain.commands import (
    CloseEnvironment,
    GenerateTurn,
    ResetEnvironment,
    ScoreTrajectory,
    StepEnvironment,
)
from rollart.domain.events import (
    EngineLost,
    EnvironmentFailed,
    EnvironmentReady,
    RewardFailed,
    TrainerLost,
    TrainingEnded,
    TrajectoryScored,
    TurnGenerated,
)
from rollart.domain.trajectory import Cause


class Run:
    """A chaos with one fault, brought about after the calm, and what becomes of it."""

    def __init__(self, fault, before=()):
        self.brought, self.errors = [], []
        self.chaos = Chaos([(fault, lambda: self.brought.append(fault))], defaultdict(list))
        self.chaos.fail = self.errors.append
        for command in before:
            self.chaos.ordered(command)
        self.train(*range(1, CALM_STEPS + 1))
        assert self.brought == [fault]

    def train(self, *versions):
        for version in versions:
            self.chaos.happened(TrainingEnded(command_id=-1, version=version))

    @property
    def recovered(self):
        return sum(map(len, self.chaos.times.values()))


def reset(command, trajectory, task="t"):
    return ResetEnvironment(
        id=command, trajectory=trajectory, task=task, prompt=0, group=0, member=0, attempt=0, version=0, timeout_s=1.0
    )


def ready(command):
    return EnvironmentReady(command_id=command, prompt_tokens=1, shared_tokens=0)


def generate(command, incarnation):
    return GenerateTurn(
        id=command,
        trajectory=1,
        group=0,
        turn=0,
        engine=1,
        incarnation=incarnation,
        prefill_engine=None,
        context_tokens=1,
        reusable_tokens=0,
        shared_tokens=0,
        partial_tokens=0,
        max_tokens=1,
    )


def turn(command):
    return TurnGenerated(
        command_id=command,
        output_tokens=1,
        cached_tokens=0,
        recomputed_tokens=0,
        preemptions=0,
        truncated=False,
        queue_s=0.0,
        prefill_s=0.0,
        decode_s=0.0,
    )


def test_an_engine_is_back_when_its_next_incarnation_has_generated():
    run = Run(Fault.ENGINE)
    run.chaos.ordered(generate(1, 0))
    run.chaos.happened(EngineLost(engine=1, incarnation=0, commands=(1,), saved_tokens=(0,)))
    run.chaos.happened(turn(1))
    assert run.recovered == 0
    run.chaos.ordered(generate(2, 1))
    run.chaos.happened(turn(2))
    assert run.recovered == 1


def test_a_trainer_is_back_when_it_has_made_a_new_version():
    run = Run(Fault.TRAINER)
    run.chaos.happened(TrainerLost(incarnation=0))
    run.train(CALM_STEPS)
    assert run.recovered == 0
    run.train(CALM_STEPS + 1)
    assert run.recovered == 1


def test_environments_are_back_when_every_episode_that_they_had_is_ready_again_or_over():
    run = Run(Fault.ENVIRONMENTS, [reset(1, 1), reset(2, 2), reset(3, 3), reset(4, 4, "other")])
    run.chaos.ordered(StepEnvironment(id=5, trajectory=1, turn=0, timeout_s=1.0))
    run.chaos.happened(EnvironmentFailed(command_id=5, cause=Cause.ERROR))
    run.chaos.ordered(CloseEnvironment(id=6, trajectory=1))
    run.chaos.ordered(CloseEnvironment(id=7, trajectory=2))
    run.chaos.ordered(reset(8, 1))
    run.chaos.happened(ready(8))
    assert run.recovered == 0
    run.chaos.happened(ready(3))
    assert run.recovered == 1


def test_an_environment_that_hangs_is_one_episode():
    run = Run(Fault.HANG, [reset(1, 1), reset(2, 2)])
    run.chaos.happened(EnvironmentFailed(command_id=1, cause=Cause.TIMEOUT))
    run.chaos.ordered(CloseEnvironment(id=3, trajectory=1))
    assert run.recovered == 0
    run.chaos.ordered(reset(4, 1))
    run.chaos.happened(ready(4))
    assert run.recovered == 1


def test_a_reward_is_back_when_its_trajectory_is_scored():
    run = Run(Fault.REWARD)
    for command, trajectory in ((1, 7), (2, 8), (3, 7)):
        run.chaos.ordered(ScoreTrajectory(id=command, trajectory=trajectory, attempt=0, timeout_s=1.0))
    run.chaos.happened(RewardFailed(command_id=1, cause=Cause.ERROR))
    run.chaos.happened(TrajectoryScored(command_id=2, reward=1.0))
    assert run.recovered == 0
    run.chaos.happened(TrajectoryScored(command_id=3, reward=1.0))
    assert run.recovered == 1
    ((noticed, recovered),) = run.chaos.times[Fault.REWARD]
    assert 0.0 <= noticed <= recovered


def test_the_run_ends_when_all_faults_are_over():
    run = Run(Fault.TRAINER)
    run.chaos.happened(TrainerLost(incarnation=0))
    # The step that shows the recovery is the first calm one.
    run.train(*range(CALM_STEPS + 1, 2 * CALM_STEPS))
    assert run.errors == []
    run.train(2 * CALM_STEPS)
    (error,) = run.errors
    with pytest.raises(Finished):
        raise error
