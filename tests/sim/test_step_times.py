"""Step times and staleness in closed form, on workloads where nothing is left to chance.

An iteration takes 1/8 s whatever it computes, so that 8 tokens take 1 s. A rollout of one turn takes a reset of 1 s,
the turn, an environment step of 0.5 s and a reward of 0.25 s. Weights are 2 GB over links of 1 GB/s.
"""

from dataclasses import replace

import pytest

from rollart.costs.weights import gather_convert_s
from rollart.domain.plan import Role
from tests.modelled.toys import ToyCosts, ToyTraining, ToyWorkload, engines, job, same_for_all, spec, task
from tests.sim.random_jobs import KV_BLOCKS, Luck, RandomWorkload, random_case
from tests.sim.runs import run

ROLLOUT_S = 1.0 + 1.0 + 0.5 + 0.25
TRAINING_S = 4.0
PUSH_S = gather_convert_s(2e9) + 2.0
BROADCAST_S = PUSH_S + 2e9 / 1e12
LAST_BUCKET_S = 1.0
LOAD_S = 2.0
ALONE = {"group": {"redundant_members": 0}, "admission": {"redundant_groups": 0.0}}
"""RollArt without redundancy."""


def simulate(policy, *, parts=None, training_s=TRAINING_S, steps=6, workload=None, **fields):
    names = [group.name for group in fields.get("groups", (engines(),))]
    costs = {name: ToyCosts(token_s=0.0) for name in names}
    made = job(policy=policy, parts=parts, steps=steps, **fields)
    return run(made, workload or same_for_all(), costs=costs, training=ToyTraining(training_s))


def staleness_of(finished):
    return [set(step.staleness) for step in finished.statistics.steps]


def lag_of(finished):
    return [set(step.lag) for step in finished.statistics.steps]


@pytest.mark.parametrize("policy", ["sync", "sync+"])
def test_a_synchronous_step_is_the_sum_of_its_stages(policy):
    finished = simulate(policy)
    period_s = ROLLOUT_S + TRAINING_S + BROADCAST_S
    assert finished.step_times_s == pytest.approx([ROLLOUT_S + TRAINING_S] + [period_s] * 5)
    assert staleness_of(finished) == lag_of(finished) == [{0}] * 6


def test_the_stages_of_a_synchronous_step_are_reported_in_full():
    step = simulate("sync+").statistics.steps[-1]
    assert {stage.value: seconds for stage, seconds in step.stages_s.items()} == pytest.approx(
        {
            "generation": 1.0,
            "environment": 1.5,
            "reward": 0.25,
            "training": TRAINING_S,
            "weight_sync_exposed": BROADCAST_S,
            "waiting_for_batch": 0.0,
        },
        abs=1e-6,
    )


UNEVEN = ToyWorkload(
    lambda *key: (
        spec(key=key, outputs=(8, 8), env_s=(2.0, 0.5))
        if key[2] % 2 == 0
        else spec(key=key, outputs=(16, 8), env_s=(0.5, 3.0))
    )
)
"""Two members: 1 + 1 + 2 + 1 + 0.5 and 1 + 2 + 0.5 + 1 + 3 seconds before their rewards."""


def test_batch_wise_interaction_pays_the_slowest_of_every_phase():
    fields = {"tasks": (task(group_size=2),), "batch_size": 2, "groups": (engines(engines=2),), "workload": UNEVEN}
    lockstep, free = simulate("sync", steps=1, **fields), simulate("sync+", steps=1, **fields)
    assert lockstep.step_times_s == pytest.approx([1.0 + 2.0 + 2.0 + 1.0 + 3.0 + 0.25 + TRAINING_S])
    assert free.step_times_s == pytest.approx([1.0 + 2.0 + 0.5 + 1.0 + 3.0 + 0.25 + TRAINING_S])


@pytest.mark.parametrize("training_s", [0.5, ROLLOUT_S, 4.0, 30.0])
def test_a_one_off_step_is_the_longer_of_rollout_and_training_and_the_update(training_s):
    finished = simulate("one-off", training_s=training_s)
    period_s = max(ROLLOUT_S, training_s) + BROADCAST_S
    assert finished.step_times_s == pytest.approx([ROLLOUT_S + training_s] + [period_s] * 5)


def test_one_off_is_never_stale_and_one_version_behind_the_trainer():
    finished = simulate("one-off")
    assert staleness_of(finished) == [{0}] * 6
    assert lag_of(finished) == [{0}] + [{1}] * 5


def test_rollart_hides_the_rollout_behind_the_way_of_the_weights():
    finished = simulate("rollart", parts=ALONE)
    period_s = TRAINING_S + PUSH_S + LAST_BUCKET_S + LOAD_S
    assert finished.step_times_s[1:] == pytest.approx([period_s] * 5)


def test_rollart_with_alpha_one_is_one_version_stale_once_it_has_begun():
    finished = simulate("rollart", parts=ALONE)
    assert staleness_of(finished) == [{0}, {0}, {1}, {1}, {1}, {1}]
    assert lag_of(finished) == [{0}, {1}, {2}, {2}, {2}, {2}]


def test_rollart_with_alpha_zero_is_synchronous():
    finished = simulate("rollart", parts={**ALONE, "staleness": {"bound": 0}})
    period_s = ROLLOUT_S + TRAINING_S + PUSH_S + LAST_BUCKET_S + LOAD_S
    assert finished.step_times_s == pytest.approx([ROLLOUT_S + TRAINING_S] + [period_s] * 5)
    assert staleness_of(finished) == lag_of(finished) == [{0}] * 6


@pytest.mark.parametrize("alpha", [0, 1, 2, 3])
def test_staleness_never_exceeds_alpha(alpha):
    finished = simulate("rollart", parts={**ALONE, "staleness": {"bound": alpha}}, steps=8)
    assert max(max(found) for found in staleness_of(finished)) <= alpha


@pytest.mark.parametrize(("policy", "resets_s"), [("sync+", 1.0), ("one-off", 0.0)])
def test_a_time_shared_pool_takes_turns(policy, resets_s):
    """Under one-off the environments of the next rollout reset while the trainer has the devices."""
    groups = (engines("shared", pool="train", time_shared=True),)
    finished = simulate(policy, groups=groups)
    # Weights to the host (2 s), training, resharding (2 GB over 100 GB/s), waking up (2 s), rollout.
    assert finished.step_times_s[0] == pytest.approx(ROLLOUT_S + 2.0 + TRAINING_S)
    period_s = 2.0 + TRAINING_S + 0.02 + 2.0 + ROLLOUT_S - 1.0 + resets_s
    assert finished.step_times_s[1:] == pytest.approx([period_s] * 5)


def test_areal_without_lookahead_is_sync_plus():
    parts = {
        "admission": {"lookahead": 0},
        "router": {"kind": "least_loaded"},
        "group": {"surplus": "stop"},
    }
    for seed in range(3):
        times = []
        for policy, overrides in (("sync+", None), ("areal", parts)):
            case = random_case(seed, policy)
            made = job(
                policy=policy,
                parts=overrides,
                tasks=case.job.tasks,
                batch_size=case.job.training.batch_size,
                groups=(engines(engines=2), engines("judges", pool="cheap", role=Role.JUDGE)),
                steps=4,
            )
            workload = RandomWorkload(seed, Luck(failed=0.0, timed_out=0.0))
            times.append(run(made, workload, kv_blocks=KV_BLOCKS * 10).step_times_s)
        assert times[0] == pytest.approx(times[1], abs=1e-9)


def test_twice_the_iterations_take_twice_the_generation():
    slow = simulate("sync+", workload=same_for_all(outputs=(16,)))
    fast = simulate("sync+")
    differences = [a - b for a, b in zip(slow.step_times_s, fast.step_times_s, strict=True)]
    assert differences == pytest.approx([1.0] * 6)


def test_engines_share_the_work():
    # Each iteration takes 1/64 s for each request: four engines are four times as fast.
    def times_s(count):
        costs = {"fast": ToyCosts(overhead_s=0.0, token_s=0.0, request_s=1 / 64)}
        made = job(policy="sync+", groups=(engines(engines=count),), batch_size=16, steps=1)
        return run(made, same_for_all(outputs=(65,)), costs=costs).step_times_s[0]

    rest_s = 1.75 + TRAINING_S
    assert times_s(1) == pytest.approx(rest_s + 64 * 16 / 64)
    assert times_s(4) == pytest.approx(rest_s + 64 * 4 / 64)


def test_warm_up_steps_are_left_out_of_the_counted_ones():
    made = replace(job(steps=5), warmup_steps=2)
    finished = run(made, same_for_all())
    assert [step.step for step in finished.statistics.counted_steps] == [2, 3, 4]
