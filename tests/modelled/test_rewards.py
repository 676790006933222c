import random

import pytest

from rollart.domain.cluster import Serverless
from rollart.domain.commands import ResetEnvironment, ScoreTrajectory
from rollart.domain.events import RewardFailed, TrajectoryScored
from rollart.domain.task import RewardKind, RewardNeeds
from rollart.domain.trajectory import Cause
from rollart.modelled.episodes import Episodes
from rollart.modelled.rewards import Rewards
from tests.modelled.toys import ToyWorkload, spec, task
from tests.sim.runs import Bench


class Service(Bench):
    """Rewards of one task."""

    def __init__(self, reward_s=1.0, *, workers=None, **service):
        super().__init__()
        self.episodes = Episodes(ToyWorkload(lambda *key: spec(key=key, reward_s=reward_s, reward=key[1] / 4)))
        kind = RewardKind.SERVERLESS if workers is None else RewardKind.LOCAL
        needs = RewardNeeds(kind=kind, workers=workers or 1)
        settings = {"max_concurrency": 10, "cold_start_s": 2.0, "keep_alive_s": 10.0, "scale_out_per_s": 1e9}
        functions = Serverless(**{**settings, **service})
        tasks = {"maze": task("maze", reward=needs)}
        self.rewards = Rewards(functions, tasks, self.episodes, self.clock, self.report)

    def score(self, time_s, number, *, timeout_s=100.0, reward_s=None):
        self.episodes.begin(
            ResetEnvironment(
                id=0,
                trajectory=number,
                task="maze",
                prompt=number,
                group=0,
                member=0,
                attempt=0,
                version=0,
                timeout_s=1.0,
            )
        )
        if reward_s is not None:
            self.episodes.specs[number].reward_s = reward_s
        order = ScoreTrajectory(id=number, trajectory=number, attempt=0, timeout_s=timeout_s)
        self.at(time_s, lambda: self.rewards.score(order))

    def ends(self):
        self.run()
        return [(pytest.approx(time_s), number) for time_s, _, number in self.answers()]


def test_a_first_call_starts_cold_and_tells_the_recorded_reward():
    service = Service()
    service.score(1.0, 3)
    assert service.run() == [(4.0, TrajectoryScored(command_id=3, reward=0.75))]
    functions = service.rewards.functions
    assert (functions.cold_starts, functions.billed_s, service.rewards.busy_s) == (1, 1.0, 1.0)


def test_an_idle_instance_stays_warm_for_its_keep_alive():
    service = Service(keep_alive_s=10.0)
    service.score(0.0, 0)
    service.score(13.0, 1)  # 10 s after the end of the first: still warm
    service.score(24.5, 2)  # 10.5 s after the end of the second: cold again
    assert service.ends() == [(3.0, 0), (14.0, 1), (27.5, 2)]
    assert service.rewards.functions.cold_starts == 2


def test_the_instance_used_last_is_used_first():
    # Two instances end at 3 s and 4 s; the calls at 13.5 s find the one of 4 s warm and the other gone.
    service = Service(keep_alive_s=10.0)
    service.score(0.0, 0)
    service.score(1.0, 1)
    service.score(13.5, 2)
    service.score(13.5, 3)
    assert service.ends() == [(3.0, 0), (4.0, 1), (14.5, 2), (16.5, 3)]


def test_calls_beyond_the_concurrency_limit_wait_in_order_and_find_a_warm_instance():
    service = Service(max_concurrency=2)
    for number in range(5):
        service.score(0.0, number)
    assert service.ends() == [(3.0, 0), (3.0, 1), (4.0, 2), (4.0, 3), (5.0, 4)]
    assert service.rewards.functions.cold_starts == 2


def test_new_instances_start_at_the_scale_out_rate():
    service = Service(scale_out_per_s=0.5)
    for number in range(3):
        service.score(0.0, number)
    assert service.ends() == [(3.0, 0), (5.0, 1), (7.0, 2)]


def test_only_work_is_billed_not_starting_and_waiting():
    service = Service(reward_s=1.5, max_concurrency=1)
    for number in range(4):
        service.score(0.0, number)
    service.run()
    assert service.rewards.functions.billed_s == 6.0


def test_a_call_that_outlasts_its_timeout_fails_and_is_billed_until_then():
    service = Service(reward_s=5.0, cold_start_s=2.0)
    service.score(0.0, 0, timeout_s=4.0)
    assert service.run() == [(4.0, RewardFailed(command_id=0, cause=Cause.TIMEOUT))]
    assert service.rewards.functions.billed_s == 2.0


def test_a_call_may_end_at_its_timeout():
    service = Service(reward_s=2.0, cold_start_s=2.0)
    service.score(0.0, 0, timeout_s=4.0)
    assert service.run() == [(4.0, TrajectoryScored(command_id=0, reward=0.0))]


def test_a_call_fails_at_its_timeout_though_it_still_waits():
    service = Service(reward_s=10.0, cold_start_s=0.0, max_concurrency=1)
    service.score(0.0, 0, timeout_s=50.0)
    service.score(1.0, 1, timeout_s=3.0)
    service.score(2.0, 2, timeout_s=50.0)
    assert service.run() == [
        (4.0, RewardFailed(command_id=1, cause=Cause.TIMEOUT)),
        (10.0, TrajectoryScored(command_id=0, reward=0.0)),
        (20.0, TrajectoryScored(command_id=2, reward=0.5)),
    ]
    assert service.rewards.functions.billed_s == 20.0


def test_a_call_fails_at_its_timeout_though_its_instance_still_starts():
    service = Service(cold_start_s=5.0)
    service.score(0.0, 0, timeout_s=3.0)
    assert service.run() == [(3.0, RewardFailed(command_id=0, cause=Cause.TIMEOUT))]
    assert service.rewards.functions.billed_s == 0.0


def test_local_workers_serve_first_come_first_served_without_a_bill():
    service = Service(workers=2)
    for number in range(5):
        service.score(0.0, number)
    assert service.ends() == [(1.0, 0), (1.0, 1), (2.0, 2), (2.0, 3), (3.0, 4)]
    assert (service.rewards.functions.billed_s, service.rewards.functions.cold_starts) == (0.0, 0)
    assert service.rewards.busy_s == 5.0


def mean_wait_s(service, arrivals, works):
    """Mean time between call and start of work, over Poisson arrivals."""
    time_s, began = 0.0, {}
    luck = random.Random(3)
    for number in range(arrivals):
        time_s += luck.expovariate(1.0)
        began[number] = time_s
        service.score(time_s, number, timeout_s=1e9, reward_s=works(luck))
    service.run()
    waits = [
        time_s - began[number] - service.episodes.specs[number].reward_s for time_s, _, number in service.answers()
    ]
    return sum(waits) / len(waits)


def test_one_worker_with_constant_work_is_an_m_d_1_queue():
    # Pollaczek-Khinchine: rho * s / (2 * (1 - rho)) with rho = s = 0.6.
    assert mean_wait_s(Service(workers=1), 12_000, lambda _: 0.6) == pytest.approx(0.45, rel=0.08)


def test_two_workers_with_exponential_work_are_an_m_m_2_queue():
    # Erlang C with offered load a = 1.2: C = 0.45, wait = C / (2 / s - 1) for s = 1.2.
    wait_s = mean_wait_s(Service(workers=2), 12_000, lambda luck: luck.expovariate(1 / 1.2))
    assert wait_s == pytest.approx(0.45 / (2 / 1.2 - 1), rel=0.1)


def test_functions_without_limits_never_let_a_call_wait():
    service = Service(cold_start_s=0.0, max_concurrency=10**6)
    assert mean_wait_s(service, 2_000, lambda luck: luck.expovariate(1 / 5)) == pytest.approx(0.0, abs=1e-9)
