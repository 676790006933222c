"""The branch and bound over durations, against a dense grid of them."""

import math

import pytest

from rollart.sched.placement.cheapest import Terms, cheapest
from rollart.sched.placement.oracle import Oracle
from rollart.sched.placement.problem import ProblemData
from rollart.sched.placement.shortest import shortest
from rollart.sched.placement.sites import sites
from tests.sched.placement.worlds import problem, tick

pytestmark = pytest.mark.slow


def searched(longest=4.0, **terms):
    data = ProblemData(problem("duo"))
    (one,) = data.instances()
    # The sites with the most kinds: fewer programs, and the same question.
    places = [site for site in sites(one, data.trainers(one.policy)) if len(site.kinds) == len(one.kinds)]
    oracle = Oracle(tick(), math.inf)
    quick = shortest(places, oracle)
    wanted = {"functions_cost": 0.0, "longest_s": quick.bound * longest, "cost_per_step": math.inf, **terms}
    return places, oracle, quick, cheapest(places, oracle, quick.bound, Terms(**{"by_duration": False, **wanted}))


def test_nothing_on_a_grid_of_durations_is_cheaper_than_the_bound():
    places, oracle, quick, found = searched()
    costs = []
    for step in range(9):
        step_s = quick.answer.step_s * (4.0 ** (step / 8))
        answers = [one for place in places if (one := oracle.cheapest(place, step_s, integer=True)) is not None]
        costs += [one.step_s * one.price_per_hour / 3600.0 for one in answers]
    value = found.answer.step_s * found.answer.price_per_hour / 3600.0
    assert found.bound <= value <= found.bound * 1.01
    assert min(costs) >= found.bound * (1 - 1e-9)


def test_a_price_of_steps_makes_the_shortest_step_longer():
    _, _, quick, free = searched()
    least = free.answer.step_s * free.answer.price_per_hour / 3600.0
    _, _, _, found = searched(cost_per_step=least * 1.02, by_duration=True)
    assert found.answer.step_s >= quick.bound
    assert found.answer.step_s * found.answer.price_per_hour / 3600.0 <= least * 1.02
    assert found.bound <= found.answer.step_s
