"""Plans of the model for the shipped scenarios: bounds, limits, pins, and what is refused."""

import pytest

from rollart.domain.errors import CapacityError, RollArtError
from rollart.domain.planning import Limits, Objective
from rollart.sched.placement.solve import predict, solve
from tests.sched.placement.worlds import problem, tick


@pytest.fixture(scope="module")
def duo():
    return problem("duo")


def solved(asked, **options):
    return solve(asked, clock=tick(), **{"top": 1, **options})


def test_the_best_plan_of_eight_devices_is_proven(duo):
    report = solved(duo, top=3)
    assert report.status == "optimal"
    assert report.floor < report.bound <= report.best.value
    assert report.gap <= 0.01
    for candidate in report.candidates:
        for name, use in candidate.predicted.pools.items():
            assert use.training_devices + use.rollout_devices + use.idle_devices == 4, name
    assert report.binding


def test_a_candidate_is_what_is_predicted_for_its_plan(duo):
    best = solved(duo).best
    again = predict(duo, best.plan)
    assert again is not None
    assert again.value == pytest.approx(best.value, rel=1e-6)


def test_the_same_problem_has_the_same_plan(duo):
    assert solved(duo, workers=1).best == solved(duo, workers=4).best


@pytest.mark.slow
def test_objectives_are_consistent(duo):
    cost, throughput = solved(duo, objective=Objective.COST), solved(duo, objective=Objective.THROUGHPUT_PER_COST)
    assert cost.floor <= cost.bound <= cost.best.value
    assert throughput.floor >= throughput.bound >= throughput.best.value
    # A batch has 32 trajectories.
    assert throughput.best.value == pytest.approx(32 / cost.best.value)
    assert cost.best.value == pytest.approx(cost.best.predicted.cost_per_step)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["planner.trainer={devices: 9}"], "no trainer fits (h800: 9 asked, 4 there; h20: 9 asked, 4 there); smallest"),
        (["planner.engines=[{engines: 0}]"], "the rules forbid every kind of engine that fits"),
        (
            ["planner={trainer: {pools: [h20], devices: 4}, engines: [{pool: h800, engines: 0}]}"],
            "h20: 5 asked for the smallest trainer and one engine, 4 there; smallest change that fits: 1 more",
        ),
        (
            ["planner={trainer: {pools: [h20], devices: 4}, tasks: [{task: WebShop, pool: h20, share: 1}]}"],
            "planner.tasks.0 (WebShop on h20, share 1 to 1): cannot be kept beside the other decisions",
        ),
        (["planner.deadline_s=0.001"], "deadline: 0.001 s a step asked, the shortest step takes"),
        pytest.param(
            ["planner.hourly_budget=0.000001"],
            "budget: 1e-06 an hour asked, the cheapest plan takes",
            marks=pytest.mark.slow,
        ),
        pytest.param(["planner.cost_per_step=1e-12"], "cost: no step costs 1e-12 or less", marks=pytest.mark.slow),
        (["cluster.pools.h20.count=1000000"], "cluster.pools.h20.count: 1000000 devices; plans are made for"),
        (["planner.staleness={least: 0, most: 40}"], "planner.staleness: 0 to 40 are 41 choices; at most 16"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(settings, message):
    with pytest.raises(RollArtError) as caught:
        solved(problem("duo", *settings))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_paper_cluster_is_planned_to_a_proof():
    asked = problem("paper-128")
    report = solved(asked, top=3)
    assert report.status == "optimal"
    assert report.gap <= 0.01
    assert report.floor >= 0.6 * report.best.value
    values = [candidate.value for candidate in report.candidates]
    assert values == sorted(values)
    own = predict(asked, asked.job.plan)
    assert own is not None
    assert own.value >= report.bound


@pytest.mark.slow
def test_pins_are_kept():
    asked = problem(
        "paper-128",
        "planner={trainer: {pools: [h800], devices: 32}, tasks: [{task: SWE-bench, pool: h800, share: 1}, "
        "{task: GEM-math, pool: h20, share: 1}], engines: [{tensor_parallel: 8, engines: 0}]}",
    )
    placement = solved(asked).best.plan.placement
    pools = {group.name: group.pool for group in placement.engine_groups}
    assert (placement.trainer.pool, placement.trainer.devices) == ("h800", 32)
    assert {pools[name] for name in placement.affinity["SWE-bench"]} == {"h800"}
    assert {pools[name] for name in placement.affinity["GEM-math"]} == {"h20"}
    assert all(group.tensor_parallel != 8 for group in placement.engine_groups)


@pytest.mark.slow
def test_a_budget_buys_less():
    free = solved(problem("paper-128"))
    hourly = free.best.predicted.cost_per_step / free.best.predicted.step_s * 3600
    tight = solved(problem("paper-128"), limits=Limits(budget_per_hour=hourly / 2))
    assert tight.best.value > free.best.value
    assert tight.best.predicted.cost_per_step / tight.best.predicted.step_s * 3600 <= hourly / 2 * 1.001


def test_errors_are_capacity_or_scenario_errors(duo):
    with pytest.raises(CapacityError):
        solve(duo, clock=tick(), limits=Limits(step_s=1e-6))


def test_names_of_pools_do_not_matter(duo):
    """The same devices under other names, and in another order, have the same best step."""
    renamed = problem(
        "duo",
        "cluster.pools={x: {device: H20, count: 4, devices_per_node: 4}, y: {device: H800, count: 4, "
        "devices_per_node: 4}}",
        "placement={trainer: {pool: y, devices: 4, tensor_parallel: 2}, engines: [{name: a, pool: x, engines: 4}], "
        "environment_slots: 256}",
    )
    one, other = solved(duo), solved(renamed)
    assert other.bound == pytest.approx(one.bound, rel=2e-3)
    assert other.best.value == pytest.approx(one.best.value, rel=5e-3)


def test_more_devices_are_never_worse(duo):
    less = solved(duo)
    more = solved(problem("duo", "cluster.pools.h20={device: H20, count: 8, devices_per_node: 4}"))
    assert more.bound <= less.bound * 1.002
    assert more.best.value <= less.best.value * 1.01
