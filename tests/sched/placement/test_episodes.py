"""What an episode asks for, attempts that fail included."""

import pytest

from rollart.domain.task import Task
from rollart.sched.parts.recovery import Backoff
from rollart.sched.placement.episodes import episode
from rollart.workload.trajectory import StepOutcome, TrajectorySpec

TASK = Task(name="maze", share=1.0, group_size=2, max_turns=3)


def spec(**fields):
    return TrajectorySpec(
        **{
            "task": "maze",
            "prompt": 0,
            "member": 0,
            "attempt": 0,
            "prompt_tokens": 100,
            "reset_s": 5.0,
            "reset_outcome": StepOutcome.OK,
            "new_tokens": [0, 20, 20, 20],
            "kept_tokens": None,
            "output_tokens": [10, 10, 10, 10],
            "env_s": [1.0, 2.0, 3.0, 4.0],
            "env_outcome": None,
            "reward_s": 0.5,
            "reward": 1.0,
            **fields,
        }
    )


class Played:
    """A workload with one specification for each attempt."""

    def __init__(self, *specs):
        self.specs = specs

    def trajectory(self, *key):
        return self.specs[key[-1]]


def played(*specs, limit=1000):
    return episode(Played(*specs), TASK, limit, Backoff(), 0, 0)


def test_sums_over_the_turns_that_are_played():
    found = played(spec())
    # The fourth turn is beyond the limit of three.
    assert found.turns == 3
    assert found.output_tokens == 30
    assert found.new_tokens == 140
    assert found.history_tokens == 100 + 130 + 160
    assert found.read_tokens == 10 * (105 + 135 + 165)
    assert found.held_tokens == pytest.approx((110 + 140 + 170) / 3)
    assert found.environment_s == found.busy_s == 5 + 1 + 2 + 3
    assert (found.length, found.reward_s) == (170, 0.5)


def test_the_context_limit_ends_an_episode():
    found = played(spec(), limit=135)
    assert (found.turns, found.output_tokens, found.length) == (2, 15, 135)
    assert found.environment_s == 6.0


def test_a_failed_attempt_is_paid_for_and_waited_for():
    bad = spec(env_outcome=[StepOutcome.OK, StepOutcome.FAILED, StepOutcome.OK, StepOutcome.OK])
    found = played(bad, spec())
    assert found.output_tokens == 20 + 30
    assert found.length == 170
    # Reset, two steps, a second of back-off, and the attempt that succeeds.
    assert found.environment_s == (5 + 1 + 2) + 1 + 11
    assert found.busy_s == 8 + 11


def test_a_reset_that_takes_too_long_is_given_up():
    found = played(spec(reset_s=1e6), spec())
    assert found.environment_s == 600 + 1 + 11


def test_rounds_go_on_from_a_failed_attempt_to_the_next():
    failing = spec(env_outcome=[StepOutcome.OK, StepOutcome.FAILED, StepOutcome.OK, StepOutcome.OK])
    found = played(failing, spec())
    back_off_s = Backoff().retry_after_s(1)
    assert [one.output_tokens for one in found.rounds] == [10, 10, 10, 10, 10, 0]
    # The reset; a step; the step that fails with the back-off and the next reset; the steps of the second attempt.
    assert [one.wait_s for one in found.rounds] == [5.0, 1.0, 2.0 + back_off_s + 5.0, 1.0, 2.0, 3.0]
    assert sum(one.wait_s for one in found.rounds) == pytest.approx(found.environment_s)
