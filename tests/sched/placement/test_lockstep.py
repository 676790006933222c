"""Draining in lockstep: every round waits for the slowest of the batch."""

from dataclasses import replace

import pytest

from rollart.sched.placement.episodes import Round
from rollart.sched.placement.lockstep import lockstep_drains
from rollart.sched.placement.points import iteration_s
from tests.sched.placement.worlds import instance_of


def _makespans(drains):
    return {(drain.kind, drain.task, drain.load): drain.makespan_s for drain in drains}


def test_taking_turns_together_is_slower_and_more_load_is_too():
    together, apart = (_makespans(instance_of("duo", f"policy={name}").drains) for name in ("sync", "sync+"))
    assert together.keys() == apart.keys()
    assert all(together[key] > apart[key] for key in together)
    for (kind, task, load), makespan_s in together.items():
        more = together.get((kind, task, 2 * load))
        assert more is None or more >= makespan_s


def _simple(demand, waits_s, output):
    """A demand whose members all have the same rounds."""
    rounds = tuple(Round(wait_s=wait_s, new_tokens=1, output_tokens=output) for wait_s in waits_s)
    return replace(demand, rounds=(rounds,) * demand.starts, reward_s=0.0)


def test_the_slowest_wait_of_a_round_counts_for_all():
    duo = instance_of("duo", "policy=sync")
    quick, slow = _simple(duo.demands[0], (10.0, 1.0), 1), _simple(duo.demands[1], (2.0, 20.0, 5.0), 1)
    found = list(lockstep_drains(duo.kinds, [quick, slow]))
    assert {drain.task for drain in found} == {0, 1}
    # 10, 20 and 5 seconds of waiting, and a token a round.
    assert all(drain.makespan_s == pytest.approx(35.0, abs=1.0) for drain in found)


def test_the_longest_answer_of_a_round_counts_for_all():
    duo = instance_of("duo", "policy=sync")
    short, long = _simple(duo.demands[0], (0.0,), 10), _simple(duo.demands[1], (0.0,), 1000)
    alone = next(drain for drain in lockstep_drains(duo.kinds, [short, long]) if (drain.task, drain.load) == (0, 1))
    kind, demand = duo.kinds[alone.kind], duo.demands[0]
    assert alone.makespan_s == pytest.approx(1000 * iteration_s(kind.costs, 1, demand.context_tokens), rel=0.05)
