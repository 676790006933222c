"""Environments from the driver's side, with processes that answer as a test says."""

import pytest

pytest.importorskip("ray")

from rollart.domain.commands import CloseEnvironment, ResetEnvironment, StepEnvironment
from rollart.domain.events import EnvironmentClosed, EnvironmentFailed, EnvironmentReady, EnvironmentStepped
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.clocks import LogicalClock
from rollart.exec.real.environments.fleet import CLOSE_S, SWEEP_S, EnvironmentFleet
from rollart.exec.real.episodes import Episodes, Generated


class Process:
    """A mailbox whose other end is the test."""

    def __init__(self, received, lost):
        self.received, self.lost = received, lost
        self.posted, self.killed = [], False

    def post(self, message):
        self.posted.append(message)

    def kill(self):
        self.killed = True


class Bench:
    """A fleet, the processes it has started, and what it has reported."""

    def __init__(self, **task):
        self.clock, self.events, self.processes, self.reasons = LogicalClock(), [], [], []
        self.episodes = Episodes()
        tasks = {"t": TaskExecution(task="t", environment="e", **task)}
        self.fleet = EnvironmentFleet(
            tasks, self.start, self.episodes, self.clock, self.events.append, lambda *told: self.reasons.append(told)
        )
        self.ids = iter(range(1, 1000))

    def start(self, _task, received, lost):
        self.processes.append(Process(received, lost))
        return self.processes[-1]

    def reset(self, trajectory, timeout_s=100.0):
        command = ResetEnvironment(
            id=next(self.ids),
            trajectory=trajectory,
            task="t",
            prompt=5,
            group=0,
            member=0,
            attempt=0,
            version=0,
            timeout_s=timeout_s,
        )
        self.fleet.reset(command)
        return command.id

    def ready(self, trajectory, place=0):
        command = self.reset(trajectory)
        self.processes[place].received(("ready", command, [1, 2, 3], 0.1))

    def step(self, trajectory, timeout_s=100.0):
        command = StepEnvironment(id=next(self.ids), trajectory=trajectory, turn=0, timeout_s=timeout_s)
        self.fleet.step(command)
        return command.id

    def close(self, trajectory):
        command = CloseEnvironment(id=next(self.ids), trajectory=trajectory)
        self.fleet.close(command)
        return command.id

    def pass_time(self, seconds):
        """Let the calendar's calls that are due happen."""
        end_s = self.clock.now + seconds
        calendar = self.clock._calendar
        while calendar.next_s <= end_s:
            self.clock._now = calendar.next_s
            calendar.call_next()


def test_an_episode():
    bench = Bench()
    bench.ready(7)
    assert bench.processes[0].posted == [("reset", 1, 7, 5, 0)]
    bench.episodes[7].generated(Generated(tokens=[8, 9], logprobs=[0.0, 0.0], versions=[0, 0]))
    step = bench.step(7)
    assert bench.processes[0].posted[-1] == ("step", step, 7, [8, 9])
    bench.processes[0].received(("stepped", step, [4], 0.5, True, 0.2))
    closed = bench.close(7)
    bench.processes[0].received(("closed", closed))
    assert bench.events == [
        EnvironmentReady(command_id=1, prompt_tokens=3, shared_tokens=3),
        EnvironmentStepped(command_id=step, observation_tokens=1, kept_tokens=None, done=True),
        EnvironmentClosed(command_id=closed),
    ]
    assert bench.episodes[7].reward == 0.5
    assert bench.fleet.busy_s == pytest.approx(0.3)


def test_an_order_beyond_the_limit_waits_for_a_free_place():
    bench = Bench(processes=2, environments_per_process=1)
    for trajectory in (1, 2, 3):
        bench.reset(trajectory)
    assert [len(process.posted) for process in bench.processes] == [1, 1]
    closed = bench.close(1)
    bench.processes[0].received(("closed", closed))
    assert bench.processes[0].posted[-1] == ("reset", 3, 3, 5, 0)


def test_a_crash_fails_what_is_at_work_and_later_what_waited():
    bench = Bench()
    bench.ready(1)
    bench.ready(2)
    step = bench.step(1)
    bench.events.clear()
    bench.processes[0].lost("killed")
    assert bench.events == [EnvironmentFailed(command_id=step, cause=Cause.ERROR)]
    assert bench.reasons == [("a process of environments of 't'", "killed")]
    late = bench.step(2)
    assert bench.events[1:] == [EnvironmentFailed(command_id=late, cause=Cause.ERROR)]
    closed = bench.close(2)
    bench.pass_time(0.0)
    assert bench.events[2:] == [EnvironmentClosed(command_id=closed)]
    bench.reset(1)
    assert len(bench.processes) == 2


def test_a_hanging_environment_times_out_and_its_process_ends_when_nothing_else_is_in_it():
    bench = Bench(environments_per_process=8, processes=2)
    bench.ready(1)
    bench.ready(2)
    step = bench.step(1, timeout_s=1.0)
    bench.events.clear()
    bench.pass_time(1.0 + 2 * SWEEP_S)
    assert bench.events == [EnvironmentFailed(command_id=step, cause=Cause.TIMEOUT)]
    assert bench.reasons == [("an environment of 't'", "no answer within 1 s")]
    bench.close(1)
    assert not bench.processes[0].killed
    bench.ready(3, place=1)
    closed = bench.close(2)
    bench.processes[0].received(("closed", closed))
    assert bench.processes[0].killed


def test_what_an_environment_raises_is_its_failure_and_told():
    bench = Bench()
    command = bench.reset(1)
    bench.processes[0].received(("failed", command, "KeyError: 'x'"))
    assert bench.events == [EnvironmentFailed(command_id=command, cause=Cause.ERROR)]
    assert bench.reasons == [("an environment of 't'", "KeyError: 'x'")]


def test_a_late_answer_is_dropped():
    bench = Bench()
    command = bench.reset(1)
    bench.close(1)
    bench.processes[0].received(("ready", command, [1], 0.1))
    assert not any(isinstance(event, EnvironmentReady) for event in bench.events)


def test_an_environment_that_goes_on_elsewhere_does_not_fail_with_the_process_in_which_it_hung():
    bench = Bench(environments_per_process=8, processes=2)
    bench.ready(1)
    bench.ready(2)
    bench.step(1, timeout_s=1.0)
    bench.pass_time(1.0 + 2 * SWEEP_S)
    bench.close(1)
    bench.ready(1, place=1)
    bench.processes[0].lost("killed")
    bench.events.clear()
    step = bench.step(1)
    assert bench.processes[1].posted[-1][:3] == ("step", step, 1)
    bench.processes[1].received(("stepped", step, [4], 0.0, False, 0.1))
    assert bench.events == [
        EnvironmentStepped(command_id=step, observation_tokens=1, kept_tokens=None, done=False),
    ]


def test_an_environment_that_was_given_up_at_work_and_hangs_frees_its_place_in_the_end():
    bench = Bench(environments_per_process=1, processes=1)
    bench.ready(1)
    bench.step(1, timeout_s=40.0)
    closed = bench.close(1)
    bench.reset(2)
    bench.events.clear()
    bench.pass_time(39.0)
    assert bench.events == []
    bench.pass_time(1.0 + 2 * SWEEP_S)
    assert bench.events == [EnvironmentClosed(command_id=closed)]
    assert bench.reasons[0] == ("an environment of 't'", "it was given up, and has not come back to be closed")
    assert bench.processes[0].killed
    assert bench.processes[1].posted[0][0] == "reset"


def test_a_process_that_does_not_even_close_what_rests_is_ended():
    bench = Bench()
    bench.ready(1)
    closed = bench.close(1)
    bench.events.clear()
    bench.pass_time(CLOSE_S + 2 * SWEEP_S)
    assert bench.events == [EnvironmentClosed(command_id=closed)]
    assert bench.processes[0].killed


def test_a_process_of_a_hanging_environment_ends_when_its_last_other_one_fails():
    bench = Bench()
    bench.ready(1)
    bench.ready(2)
    bench.step(1, timeout_s=1.0)
    bench.pass_time(1.0 + 2 * SWEEP_S)
    bench.close(1)
    step = bench.step(2)
    bench.processes[0].received(("failed", step, "KeyError: 'x'"))
    assert bench.processes[0].killed
    assert bench.events[-1] == EnvironmentFailed(command_id=step, cause=Cause.ERROR)
