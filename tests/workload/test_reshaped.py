"""Workloads with other lengths and tails."""

import numpy as np
import pytest

from rollart.workload.reshaped import AS_IT_IS, Reshape, ReshapedWorkload
from rollart.workload.trajectory import StepOutcome, TrajectorySpec


class Ladder:
    """Prompt p writes 10 (p + 1) tokens in each of two turns, and waits p + 1 seconds behind each."""

    def trajectory(self, task, prompt, member, attempt):
        length = prompt + 1
        return TrajectorySpec(
            task=task,
            prompt=prompt,
            member=member,
            attempt=attempt,
            prompt_tokens=100,
            reset_s=1.0,
            reset_outcome=StepOutcome.OK,
            new_tokens=[0, 5],
            kept_tokens=None,
            output_tokens=[10 * length, 10 * length],
            env_s=[float(length), float(length)],
            env_outcome=None,
            reward_s=0.0,
            reward=1.0,
        )


def reshaped(limit=10_000, **figures):
    return ReshapedWorkload(Ladder(), Reshape(**figures), limit)


def test_nothing_changes_without_a_reshape():
    assert ReshapedWorkload(Ladder(), AS_IT_IS, 10_000).trajectory("t", 31, 0, 0) == Ladder().trajectory("t", 31, 0, 0)


def test_outputs_are_scaled_and_stay_at_least_one_token():
    assert reshaped(output_scale=0.5).trajectory("t", 3, 0, 0).output_tokens == [20, 20]
    assert reshaped(output_scale=0.001).trajectory("t", 3, 0, 0).output_tokens == [1, 1]


def test_only_what_exceeds_the_knee_is_stretched():
    knee = np.quantile(np.repeat(np.arange(1, 33), 2), 0.9)
    workload = reshaped(tail_scale=2.0)
    assert workload.trajectory("t", 10, 0, 0).output_tokens == [110, 110]
    top = workload.trajectory("t", 31, 0, 0)
    assert top.output_tokens == [round(10 * (knee + 2 * (32 - knee)))] * 2
    assert top.env_s == pytest.approx([knee + 2 * (32 - knee)] * 2)
    assert top.reset_s == 1.0


def test_the_context_limit_cuts_the_turn_that_passes_it_and_drops_the_rest():
    # 100 + 320 + 5 leave 75 tokens for the second turn.
    spec = reshaped(limit=500, output_scale=1.0).trajectory("t", 31, 0, 0)
    assert spec.output_tokens == [320, 75]
    assert spec.truncated
    spec = reshaped(limit=400, output_scale=1.0).trajectory("t", 31, 0, 0)
    assert (spec.output_tokens, spec.new_tokens, spec.env_s) == ([300], [0], [32.0])
