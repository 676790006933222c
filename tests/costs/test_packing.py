import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.costs.packing import pack

LENGTHS = st.lists(st.integers(1, 120), min_size=1, max_size=60)


def test_equal_lengths_are_spread_evenly():
    packing = pack([10.0] * 12, [10.0] * 12, ranks=4, budget_tokens=30)
    assert packing.micro_steps == 1
    assert np.bincount(packing.bins).tolist() == [3, 3, 3, 3]


def test_cost_is_balanced_not_count():
    costs = [8.0, 4.0, 2.0, 1.0, 1.0]
    packing = pack([1.0] * 5, costs, ranks=2, budget_tokens=100)
    assert sorted(np.bincount(packing.bins, weights=costs).tolist()) == [8.0, 8.0]


def test_a_trajectory_above_the_budget_is_alone():
    packing = pack([50.0, 5.0, 5.0], [50.0, 5.0, 5.0], ranks=1, budget_tokens=20)
    assert packing.micro_steps == 2
    assert packing.bins[1] == packing.bins[2] != packing.bins[0]


@settings(max_examples=100, deadline=None)
@given(LENGTHS, st.integers(1, 8))
def test_every_trajectory_is_packed_once_within_the_budget(lengths, ranks):
    tokens = [float(length) for length in lengths]
    packing = pack(tokens, [length**2 for length in tokens], ranks=ranks, budget_tokens=100)
    count = packing.micro_steps * ranks
    held = np.bincount(packing.bins, weights=tokens, minlength=count)
    members = np.bincount(packing.bins, minlength=count)
    assert len(held) == count
    assert held.sum() == sum(tokens)
    assert all(total <= 100 or alone == 1 for total, alone in zip(held, members, strict=True))


@settings(max_examples=50, deadline=None)
@given(LENGTHS, st.integers(1, 8))
def test_without_a_tight_budget_the_fullest_is_within_one_trajectory_of_the_mean(lengths, ranks):
    tokens = [float(length) for length in lengths]
    packing = pack(tokens, tokens, ranks=ranks, budget_tokens=1e6)
    held = np.bincount(packing.bins, weights=tokens, minlength=ranks)
    assert packing.micro_steps == 1
    assert held.max() <= sum(tokens) / ranks + max(tokens) + 1e-9
