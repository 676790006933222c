from statistics import fmean

import pytest
import yaml

pytest.importorskip("gymnasium")

from experiments.speedup import BATCH, POLICIES, REFERENCE, delayed_profile, key, predicted_s, rows, scenario_of


def run(policy, repetition, *steps_s, mean_s=0.1, settings=()):
    return {
        "policy": policy,
        "mean_delay_s": mean_s,
        "repetition": repetition,
        "settings": list(settings),
        "steps_s": list(steps_s),
    }


def test_ratios_are_taken_repetition_by_repetition():
    runs = [
        run("sync", 0, 4.0, 6.0),
        run("sync", 1, 8.0),
        run("rollart", 0, 2.0),
        run("rollart", 1, 2.0),
        run("areal", 2, 1.0),
        run("rollart", 0, 100.0, mean_s=1.0),
        run("sync", 1, 4.0, settings=["a=2"]),
    ]
    predictions = {key(policy, 0.1): 1.0 for policy in POLICIES} | {key("rollart", 0.1): 0.5}
    assert list(rows(runs, predictions, 0.1)) == [
        ("sync", "2", "6.50", "1.00", "1.00-1.00", "1.00", "1.00"),
        ("rollart", "2", "2.00", "3.25", "2.50-4.00", "0.50", "2.00"),
        ("sync, a=2", "1", "4.00", "2.00", "2.00-2.00", "1.00", "1.00"),
    ]


def test_every_run_has_the_same_work_under_its_own_policy():
    for policy in POLICIES:
        scenario = scenario_of(policy, 1.0)
        job, settings = scenario.job(), scenario.execution()
        assert (job.plan.policy.name, job.training.batch_size) == (policy, BATCH)
        assert settings.learning.learning_rate == 0.0
        assert {task.environment for task in settings.tasks} == {"delayed"}
        assert {task.arguments["environment"] for task in settings.tasks} == {"frozenlake", "counting"}


def test_the_simulator_is_told_the_delays(tmp_path):
    path = tmp_path / "delayed.yaml"
    path.write_text(yaml.safe_dump(delayed_profile(1.0)), encoding="utf-8")
    more = [f"tasks.{task}.workload.profile={path}" for task in ("FrozenLake", "counting")]
    scenario = scenario_of("rollart", 1.0, *more)
    workload = scenario.workload()
    times = [
        env_s
        for prompt in range(40)
        for member in range(8)
        for env_s in workload.trajectory("FrozenLake", prompt, member, 0).env_s
    ]
    assert fmean(times) == pytest.approx(1.0, rel=0.15)
    # Six turns, each as long as the longest of 32 delays.
    assert predicted_s(REFERENCE, 0.1) > predicted_s(REFERENCE, 0.0) + 1.0
