"""The driver fails loudly and leaves in good order."""

import asyncio
from collections import defaultdict
from dataclasses import replace

import pytest

from rollart.domain.errors import InvariantError, RunInterrupted, StuckError
from rollart.domain.events import EnvironmentClosed, TrainingEnded
from rollart.domain.job import Faults, Preemption
from rollart.exec.clocks import LogicalClock, WallClock
from rollart.exec.driver import Driver
from rollart.exec.fake import wire
from rollart.exec.fake.workers import FakeWorkers
from rollart.runlog.samples import EngineSample, Sample
from rollart.runlog.writer import RunLogWriter
from rollart.sched.controller import Controller
from rollart.sched.run_header import run_header
from rollart.sched.setup import controller_config
from tests.exec.runs import toy_models
from tests.modelled.toys import job, same_for_all
from tests.runlog.scripts import Collector


def drive(made, *, speed=None, change=lambda *_: None, act=None, sinks=()):
    """Run toy workers, which `change` may tamper with; the driver, and whether its workers were stopped."""
    models = toy_models(made, same_for_all())
    config = controller_config(made)
    header = run_header(made, config, driver="exec", code_version="test")
    stopped = []

    async def live(log):
        clock = LogicalClock() if speed is None else WallClock(speed)

        def make(desk):
            workers = FakeWorkers(models, clock, desk)
            leave = workers.stop

            async def stop():
                stopped.append(True)
                await leave()

            workers.stop = stop
            change(workers, desk)
            return workers

        driver = Driver(Controller(config), log, clock, make)
        if act is not None:
            asyncio.get_running_loop().call_later(0.05, act, driver)
        try:
            await asyncio.wait_for(driver.run(), 60.0)
        finally:
            assert stopped == [True]
        return driver

    with RunLogWriter(None, header, sinks) as log:
        return asyncio.run(live(log))


def test_a_run_ends_with_its_last_step():
    driver = drive(job(steps=2))
    assert driver.controller.state.stopped
    assert driver.controller.state.trained == 2


@pytest.mark.parametrize("speed", [None, 1000.0], ids=["logical", "wall"])
def test_counters_are_read_once_a_step_all_at_one_time(speed):
    collector = Collector()
    drive(job(steps=3), speed=speed, sinks=[collector])
    kinds_at = defaultdict(list)
    for window in collector.windows:
        for _, time_s, record in window.in_order():
            if isinstance(record, Sample):
                kinds_at[time_s].append(type(record))
    readings = list(kinds_at.values())
    assert len(readings) == 3
    assert EngineSample in readings[0]
    assert readings == readings[:1] * 3


@pytest.mark.parametrize("speed", [None, 1000.0], ids=["logical", "wall"])
def test_a_worker_that_raises_ends_the_run(speed):
    def change(workers, _):
        def broken(_):
            raise OSError("the host is gone")

        workers.host.workers.trainer.train = broken
        workers.host._orders = workers.host.workers.orders()

    with pytest.raises(OSError, match="the host is gone"):
        drive(job(), speed=speed, change=change)


@pytest.mark.parametrize("speed", [None, 1000.0], ids=["logical", "wall"])
def test_an_event_that_the_controller_refuses_ends_the_run(speed):
    def change(workers, desk):
        receive = workers.host.receive

        def tampered(message):
            receive(message)
            desk.report("no event")

        workers.host.receive = tampered
        workers._commands, workers._events = workers._lanes(workers._clock)

    with pytest.raises(InvariantError, match="no handler for the event str"):
        drive(job(), speed=speed, change=change)


@pytest.mark.parametrize("speed", [None, 1000.0], ids=["logical", "wall"])
def test_answers_that_never_come_are_no_silent_wait(speed):
    def change(workers, _):
        events = workers._events
        deliver = events.send
        events.send = lambda message: None if isinstance(wire.event_of(message), TrainingEnded) else deliver(message)

    with pytest.raises(InvariantError, match=r"deadlock at .* s: nothing is due"):
        drive(job(), speed=speed, change=change)


@pytest.mark.parametrize("speed", [None, 1000.0], ids=["logical", "wall"])
def test_a_run_without_engines_is_stuck(speed):
    made = job(
        steps=1000,
        parts={"recovery": {"max_engine_restarts": 0}},
        faults=Faults(preemptions=(Preemption(time_s=2.0, engine=0, away_s=1.0),)),
    )
    with pytest.raises(StuckError, match="no engine is left"):
        drive(made, speed=speed)


def test_an_interrupted_run_says_how_far_it_came():
    made = job(steps=1000)
    with pytest.raises(RunInterrupted, match=r"the run was stopped after step \d+; go on with --resume"):
        drive(made, speed=1.0, act=Driver.interrupt)


def test_answers_of_the_wrong_time_change_nothing():
    def change(workers, desk):
        report = desk.report

        def twice(message):
            event = wire.event_of(message)
            report(event)
            if isinstance(event, EnvironmentClosed):
                report(event)

        workers._received = twice
        workers._commands, workers._events = workers._lanes(workers._clock)

    assert drive(replace(job(steps=2)), change=change).controller.state.trained == 2
