"""Ranks in step: one rank is an ordinary engine; several wait for the slowest."""

import random
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.errors import CapacityError
from rollart.serving import Engine, EngineConfig, Request
from rollart.serving.lockstep import LockstepEngine


class SlowestRank:
    """An iteration takes as long as that of the slowest rank alone."""

    kv_capacity_tokens = 10**6

    def __init__(self, costs):
        self.costs = costs
        self.seen = []

    def iteration_s(self, ranks):
        self.seen.append([(work.batch, len(work.chunks)) for work in ranks])
        return max(self.costs.mixed_s(*work) for work in ranks if work.batch or work.chunks)


def requests(seed, count):
    chance = random.Random(seed)
    now = 0.0
    for number in range(count):
        now += chance.choice([0.0, 0.1, 0.5])
        tokens, output = chance.randint(1, 200), chance.randint(1, 60)
        yield now, Request(request_id=number, chain=number, context_tokens=tokens, output_tokens=output)


def drive(subject, arrivals):
    done = []
    for now, request in arrivals:
        while subject.next_wake < now:
            done += subject.advance(subject.next_wake)
        subject.submit(request, now)
    while subject.next_wake < inf:
        done += subject.advance(subject.next_wake)
    return sorted(done)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), lag=st.integers(0, 1), blocks=st.sampled_from([20, 60, 1000]))
def test_one_rank_is_an_engine(seed, lag, blocks, bent_costs):
    limits = {"max_num_seqs": 4, "max_num_batched_tokens": 64, "kv_blocks": blocks}
    config = EngineConfig(scheduling_lag=lag, **limits)
    costs = bent_costs(64.0)
    found = drive(LockstepEngine(config, SlowestRank(costs), 1), requests(seed, 12))
    expected = drive(Engine(config, costs), requests(seed, 12))
    assert len(found) == 12
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[:-1] == pytest.approx(theirs[:-1], rel=1e-9, abs=1e-9)


def test_requests_are_dealt_to_the_least_loaded_rank(bent_costs):
    config = EngineConfig(max_num_seqs=4, max_num_batched_tokens=64, kv_blocks=100)
    costs = SlowestRank(bent_costs())
    drive(LockstepEngine(config, costs, 2), [(0.0, request) for _, request in requests(1, 2)])
    assert costs.seen[0] == [(0, 1), (0, 1)]


def test_a_short_request_waits_for_the_prompt_of_the_other_rank(bent_costs):
    """Both prompts end with the longer one's first iteration."""
    config = EngineConfig(max_num_seqs=4, max_num_batched_tokens=1024, kv_blocks=100)
    short = Request(request_id=0, chain=0, context_tokens=1, output_tokens=1)
    long = Request(request_id=1, chain=1, context_tokens=1000, output_tokens=1)
    costs = bent_costs()
    done = drive(LockstepEngine(config, SlowestRank(costs), 2), [(0.0, short), (0.0, long)])
    assert [completion.time_s for completion in done] == [costs.mixed_s(0, 0, [(1000, 0)])] * 2


def test_a_request_too_long_for_a_rank_is_refused(bent_costs):
    config = EngineConfig(max_num_seqs=1, max_num_batched_tokens=64, kv_blocks=4)
    subject = LockstepEngine(config, SlowestRank(bent_costs()), 2)
    with pytest.raises(CapacityError, match="needs the KV of 109 tokens"):
        subject.submit(Request(request_id=0, chain=0, context_tokens=100, output_tokens=10), 0.0)
