import pytest

from rollart.domain.cluster import EnvironmentHosts
from rollart.domain.commands import CloseEnvironment, ResetEnvironment, StepEnvironment
from rollart.domain.events import EnvironmentFailed, EnvironmentReady, EnvironmentStepped
from rollart.domain.task import EnvironmentNeeds
from rollart.domain.trajectory import Cause
from rollart.modelled.environments import Environments
from rollart.modelled.episodes import Episodes
from rollart.workload.trajectory import StepOutcome
from tests.modelled.toys import ToyWorkload, spec, task
from tests.sim.runs import Bench

TIMEOUT, FAILED, OK = StepOutcome.TIMEOUT, StepOutcome.FAILED, StepOutcome.OK


class Hosts(Bench):
    """Environments of one task on their hosts."""

    def __init__(self, make=spec, *, count=1, host_cores=1000.0, bandwidth=100.0, **needs):
        super().__init__()
        hosts = EnvironmentHosts(count=count, cores_per_host=host_cores, image_bandwidth_bytes_per_s=bandwidth)
        self.episodes = Episodes(ToyWorkload(lambda *key: make(key=key)))
        tasks = {"maze": task("maze", environment=EnvironmentNeeds(**needs))}
        self.environments = Environments(hosts, tasks, self.episodes, self.clock, self.report)

    def reset(self, time_s, trajectory, *, command=None, timeout_s=600.0, attempt=0):
        command = trajectory if command is None else command
        order = ResetEnvironment(
            id=command,
            trajectory=trajectory,
            task="maze",
            prompt=trajectory,
            group=0,
            member=0,
            attempt=attempt,
            version=0,
            timeout_s=timeout_s,
        )
        self.at(time_s, lambda: self.environments.reset(order))

    def step(self, time_s, trajectory, command, *, turn=0, timeout_s=600.0):
        order = StepEnvironment(id=command, trajectory=trajectory, turn=turn, timeout_s=timeout_s)
        self.at(time_s, lambda: self.environments.step(order))

    def close(self, time_s, trajectory, command):
        self.at(time_s, lambda: self.environments.close(CloseEnvironment(id=command, trajectory=trajectory)))


def test_a_reset_takes_its_recorded_time_and_tells_the_first_prompt():
    hosts = Hosts()
    hosts.reset(2.0, 0)
    assert hosts.run() == [(3.0, EnvironmentReady(command_id=0, prompt_tokens=64, shared_tokens=64))]


def test_a_step_tells_the_observation_of_the_next_turn():
    hosts = Hosts(lambda key: spec(key=key, outputs=(8, 8), observations=16, env_s=0.5))
    hosts.reset(0.0, 0)
    hosts.step(2.0, 0, 10, turn=0)
    hosts.step(4.0, 0, 11, turn=1)
    assert hosts.run()[1:] == [
        (2.5, EnvironmentStepped(command_id=10, observation_tokens=16, kept_tokens=None, done=False)),
        (4.5, EnvironmentStepped(command_id=11, observation_tokens=0, kept_tokens=None, done=True)),
    ]


def test_demand_above_the_cores_stretches_what_starts_then():
    # Each reset asks for one of two cores and takes 1 s: the third finds a demand of 3 over 2.
    hosts = Hosts(host_cores=2.0, cores=1.0)
    for trajectory in range(3):
        hosts.reset(0.0, trajectory)
    hosts.run()
    assert [(time_s, number) for time_s, _, number in hosts.answers()] == [(1.0, 0), (1.0, 1), (1.5, 2)]
    assert hosts.environments.busy_core_s == 3.0


def test_demand_falls_when_work_ends_or_is_closed():
    hosts = Hosts(host_cores=1.0, cores=1.0)
    hosts.reset(0.0, 0)
    hosts.reset(0.5, 1)
    hosts.close(0.75, 1, 90)
    hosts.reset(1.25, 2)
    hosts.run()
    assert hosts.answers() == [
        (0.75, "EnvironmentClosed", 90),
        (1.0, "EnvironmentReady", 0),
        (2.25, "EnvironmentReady", 2),
    ]


def test_a_recorded_failure_is_reported_when_the_work_is_over():
    hosts = Hosts(lambda key: spec(key=key, reset_s=3.0, reset_outcome=FAILED))
    hosts.reset(0.0, 0)
    assert hosts.run() == [(3.0, EnvironmentFailed(command_id=0, cause=Cause.ERROR))]


def test_every_step_has_its_own_outcome():
    hosts = Hosts(lambda key: spec(key=key, outputs=(8, 8), env_outcome=[OK, FAILED]))
    hosts.reset(0.0, 0)
    hosts.step(2.0, 0, 10, turn=0)
    hosts.step(4.0, 0, 11, turn=1)
    hosts.run()
    assert [name for _, name, _ in hosts.answers()] == ["EnvironmentReady", "EnvironmentStepped", "EnvironmentFailed"]


@pytest.mark.parametrize(("timeout_s", "end_s"), [(600.0, 50.0), (20.0, 20.0)])
def test_a_recorded_timeout_ends_at_the_earlier_of_both_timeouts(timeout_s, end_s):
    hosts = Hosts(lambda key: spec(key=key, reset_s=50.0, reset_outcome=TIMEOUT))
    hosts.reset(0.0, 0, timeout_s=timeout_s)
    assert hosts.run() == [(end_s, EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT))]


def test_work_that_outlasts_the_command_times_out():
    hosts = Hosts(lambda key: spec(key=key, reset_s=10.0, env_s=9.0))
    hosts.reset(0.0, 0, timeout_s=4.0)
    hosts.reset(0.0, 1, timeout_s=10.0)
    hosts.step(20.0, 1, 30, timeout_s=8.0)
    assert hosts.run() == [
        (4.0, EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT)),
        (10.0, EnvironmentReady(command_id=1, prompt_tokens=64, shared_tokens=64)),
        (28.0, EnvironmentFailed(command_id=30, cause=Cause.TIMEOUT)),
    ]


def test_contention_can_push_work_over_its_timeout():
    hosts = Hosts(lambda key: spec(key=key, reset_s=4.0), host_cores=1.0, cores=2.0)
    hosts.reset(0.0, 0, timeout_s=7.0)
    assert hosts.run() == [(7.0, EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT))]


def test_the_answer_of_a_closed_environment_never_comes():
    hosts = Hosts()
    hosts.reset(0.0, 0)
    hosts.step(2.0, 0, 10)
    hosts.close(2.25, 0, 11)
    hosts.run()
    assert hosts.answers() == [(1.0, "EnvironmentReady", 0), (2.25, "EnvironmentClosed", 11)]


def test_a_retry_is_not_answered_by_the_attempt_before_it():
    hosts = Hosts(lambda key: spec(key=key, reset_s=3.0 if key[3] == 0 else 2.0))
    hosts.reset(0.0, 0)
    hosts.close(1.0, 0, 10)
    hosts.reset(1.0, 0, command=11, attempt=1)
    hosts.run()
    assert hosts.answers() == [(1.0, "EnvironmentClosed", 10), (3.0, "EnvironmentReady", 11)]


def test_an_image_is_pulled_once_per_host_and_all_its_resets_wait():
    # Two hosts, 100 bytes each over a registry of 100 bytes/s that both share: both have it at 2 s.
    hosts = Hosts(count=2, image_bytes=100.0)
    for trajectory in range(4):
        hosts.reset(0.0, trajectory)
    hosts.reset(5.0, 4)
    hosts.run()
    assert [(time_s, number) for time_s, _, number in hosts.answers()] == [
        (3.0, 0),
        (3.0, 2),
        (3.0, 1),
        (3.0, 3),
        (6.0, 4),
    ]
    assert len(hosts.episodes.specs) == 5


def test_a_reset_that_joins_late_waits_for_the_rest_of_the_pull():
    hosts = Hosts(image_bytes=400.0)
    hosts.reset(0.0, 0)
    hosts.reset(3.0, 1)
    hosts.run()
    assert hosts.answers() == [(5.0, "EnvironmentReady", 0), (5.0, "EnvironmentReady", 1)]


def test_an_environment_closed_while_it_waits_for_its_image_stays_closed():
    hosts = Hosts(image_bytes=400.0)
    hosts.reset(0.0, 0)
    hosts.close(1.0, 0, 10)
    hosts.reset(2.0, 1)
    hosts.run()
    assert hosts.answers() == [(1.0, "EnvironmentClosed", 10), (5.0, "EnvironmentReady", 1)]


def test_a_reset_times_out_while_it_waits_for_its_image():
    hosts = Hosts(image_bytes=400.0)
    hosts.reset(0.0, 0, timeout_s=3.0)
    hosts.reset(1.0, 1, timeout_s=3.5)
    assert hosts.run() == [
        (3.0, EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT)),
        (4.5, EnvironmentFailed(command_id=1, cause=Cause.TIMEOUT)),
    ]


def test_slots_are_integrated_from_reset_to_close():
    hosts = Hosts()
    hosts.reset(1.0, 0)
    hosts.reset(2.0, 1)
    hosts.close(5.0, 0, 10)
    hosts.close(7.0, 1, 11)
    hosts.run()
    assert hosts.environments.slots_s == 4.0 + 5.0


def test_core_seconds_are_work_times_cores():
    hosts = Hosts(lambda key: spec(key=key, reset_s=2.0, env_s=0.5), cores=4.0)
    hosts.reset(0.0, 0)
    hosts.step(3.0, 0, 10)
    hosts.run()
    assert hosts.environments.busy_core_s == 4.0 * 2.5
