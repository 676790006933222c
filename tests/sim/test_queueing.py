"""Whole simulations against queueing theory."""

import random
from itertools import accumulate

import pytest

from rollart.domain.events import TurnGenerated
from tests.modelled.toys import ToyCosts, ToyWorkload, engines, job, spec, task
from tests.sim.runs import run

PATIENT = {"recovery": {"reset_timeout_s": 1e8, "step_timeout_s": 1e8, "reward_timeout_s": 1e8}}


def mean_queue_s(rate_per_s, outputs, trajectories, seed=1):
    """Mean queueing time of turns that arrive as a Poisson stream at an engine that serves one at a time.

    All environments reset at once and take until their arrival; an iteration takes 1/8 s.
    """
    luck = random.Random(seed)
    arrivals = list(accumulate(luck.expovariate(rate_per_s) for _ in range(trajectories)))
    tokens = [outputs(luck) for _ in range(trajectories)]
    workload = ToyWorkload(
        lambda *key: spec(key=key, prompt_tokens=1, reset_s=arrivals[key[1]], outputs=(tokens[key[1]],))
    )
    made = job(
        parts=PATIENT,
        tasks=(task(group_size=1),),
        groups=(engines(max_num_seqs=1, prefix_caching=False),),
        batch_size=trajectories,
        slots=trajectories,
        steps=1,
    )
    finished = run(made, workload, costs={"fast": ToyCosts(token_s=0.0)})
    turns = [turn for _, turn in finished.of(TurnGenerated)]
    assert len(turns) == trajectories
    return sum(turn.queue_s for turn in turns) / trajectories


def pollaczek_khinchine(rate_per_s, mean_s, second_moment_s2):
    return rate_per_s * second_moment_s2 / (2.0 * (1.0 - rate_per_s * mean_s))


def test_turns_of_one_token_are_an_m_d_1_queue():
    rate = 0.6 * 8
    expected_s = pollaczek_khinchine(rate, 1 / 8, 1 / 64)
    assert mean_queue_s(rate, lambda _: 1, 5_000) == pytest.approx(expected_s, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_m_d_1_at_several_loads(load):
    expected_s = pollaczek_khinchine(load * 8, 1 / 8, 1 / 64)
    assert mean_queue_s(load * 8, lambda _: 1, 30_000) == pytest.approx(expected_s, rel=0.05)


def geometric(mean):
    """Lengths 1, 2, ... that forget how long they have been: the discrete exponential."""

    def draw(luck):
        length = 1
        while luck.random() > 1.0 / mean:
            length += 1
        return length

    return draw


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.4, 0.7])
def test_geometric_lengths_are_nearly_an_m_m_1_queue(load):
    # A geometric number of iterations with mean m has the second moment m (2 m - 1).
    mean = 20
    rate = load * 8 / mean
    expected_s = pollaczek_khinchine(rate, mean / 8, mean * (2 * mean - 1) / 64)
    assert expected_s == pytest.approx(load / (1 - load) * mean / 8, rel=0.03)
    assert mean_queue_s(rate, geometric(mean), 30_000) == pytest.approx(expected_s, rel=0.08)


def mean_value_analysis(customers, think_s, demand_s):
    """Response time of one processor-sharing station in a closed network with a delay (Reiser and Lavenberg)."""
    queue = response_s = 0.0
    for number in range(1, customers + 1):
        response_s = demand_s * (1.0 + queue)
        queue = number / (think_s + response_s) * response_s
    return response_s


@pytest.mark.parametrize("customers", [1, 3, 8])
def test_environments_and_an_engine_are_a_closed_network(customers):
    """An iteration takes longer the more requests it has: the engine shares itself out; environments are a delay."""
    tokens, token_s, think_s, turns = 64, 1 / 64, 3.0, 1200 // customers
    luck = random.Random(5)
    thoughts = [[luck.expovariate(1 / think_s) for _ in range(turns)] for _ in range(customers)]

    def make(*key):
        made = spec(key=key, prompt_tokens=1, outputs=(tokens,) * turns, observations=0, env_s=thoughts[key[1]])
        # Only the first token survives a turn, so that every turn computes one prompt token.
        made.kept_tokens = [None] + [1] * (turns - 1)
        made.reset_s = thoughts[key[1]][-1]
        return made

    made = job(parts=PATIENT, tasks=(task(group_size=1, max_turns=turns),), batch_size=customers, steps=1)
    costs = {"fast": ToyCosts(overhead_s=0.0, token_s=token_s, request_s=token_s)}
    finished = run(made, ToyWorkload(make), costs=costs)
    answers = [turn.queue_s + turn.prefill_s + turn.decode_s for _, turn in finished.of(TurnGenerated)]
    # The last turns run beside fewer others.
    counted = answers[: len(answers) * 9 // 10]
    expected_s = mean_value_analysis(customers, think_s, tokens * token_s)
    assert sum(counted) / len(counted) == pytest.approx(expected_s, rel=0.06)
