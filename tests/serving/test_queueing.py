"""Where the engine reduces to a queue of the textbooks, it has the textbook's means."""

import random
from math import inf, log, sqrt

import pytest

from rollart.costs.interface import LinearPiece
from rollart.serving import Engine, EngineConfig, Request


class TokenCosts:
    """An iteration takes `token_s`, for all its tokens together or for each of them."""

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def __init__(self, token_s, each=False):
        self.token_s, self.each = token_s, each

    def decode(self, batch, context_tokens):  # noqa: ARG002
        return LinearPiece(self.token_s * (batch if self.each else 1), 0.0, inf)

    def mixed_s(self, batch, context_tokens, chunks):  # noqa: ARG002
        return self.token_s * (batch + len(chunks) if self.each else 1)


def served(engine, rate, lengths, chance):
    """Completions, in order of submission, of Poisson arrivals with these output lengths."""
    done = {}
    now = 0.0
    for key, tokens in enumerate(lengths):
        now += chance.expovariate(rate)
        while engine.next_wake < now:
            done |= {found.request_id: found for found in engine.advance(engine.next_wake)}
        engine.submit(Request(request_id=key, chain=key, context_tokens=1, output_tokens=tokens), now)
    while engine.next_wake < inf:
        done |= {found.request_id: found for found in engine.advance(engine.next_wake)}
    return [done[key] for key in range(len(lengths))]


def assert_mean(values, expected, batches=40):
    """The mean is within four standard errors, by batch means; and these are below 4 % of it."""
    size = len(values) // batches
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(batches)]
    mean = sum(means) / batches
    error = sqrt(sum((found - mean) ** 2 for found in means) / (batches - 1) / batches)
    assert error < 0.04 * expected
    assert abs(mean - expected) < 4 * error


def geometric(chance, mean):
    """Tokens up to and including the first success of probability 1 / mean."""
    return int(log(1.0 - chance.random()) / log(1.0 - 1.0 / mean)) + 1


def single_server(lag=0):
    config = EngineConfig(max_num_seqs=1, max_num_batched_tokens=64, kv_blocks=10**6, scheduling_lag=lag)
    return Engine(config, TokenCosts(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0, 1])
def test_geometric_lengths_wait_as_in_m_g_1(lag):
    """Pollaczek-Khinchine with E[S^2] = (2 - p) / p^2 for geometric service of mean 1 / p."""
    chance = random.Random(3)
    mean, load = 20.0, 0.6
    lengths = [geometric(chance, mean) for _ in range(40_000)]
    done = served(single_server(lag), load / mean, lengths, chance)
    second_moment = (2 - 1 / mean) * mean**2
    assert_mean([found.queue_s for found in done], load / mean * second_moment / (2 * (1 - load)))


def test_equal_lengths_wait_as_in_m_d_1():
    chance = random.Random(4)
    mean, load = 10, 0.5
    done = served(single_server(), load / mean, [mean] * 8_000, chance)
    assert_mean([found.queue_s for found in done], load * mean / (2 * (1 - load)))


@pytest.mark.slow
def test_a_batch_that_shares_its_time_is_processor_sharing():
    """With an iteration as long as its tokens, the mean time in system is E[S] / (1 - load), whatever the lengths."""
    chance = random.Random(5)
    mean_tokens, load, token_s = 400.0, 0.5, 1 / 400
    config = EngineConfig(max_num_seqs=1000, max_num_batched_tokens=1000, kv_blocks=10**6)
    engine = Engine(config, TokenCosts(token_s, each=True))
    lengths = [geometric(chance, mean_tokens) for _ in range(20_000)]
    done = served(engine, load / (mean_tokens * token_s), lengths, chance)
    assert_mean([found.queue_s + found.prefill_s + found.decode_s for found in done], 1.0 / (1 - load))
