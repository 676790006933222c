import msgspec
import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import RunLogError
from rollart.runlog.schema import Record
from rollart.sched.replay import ReplayReport, controller_of, replay
from tests.sched.setups import header, setup
from tests.sched.toydriver import Luck, ToyDriver

Records = list[tuple[int, float, Record]]


@pytest.fixture(scope="module")
def driver() -> ToyDriver:
    """A run with an engine loss, failures and late answers in it."""
    luck = Luck(seed=3, environment_fails=0.1, late_answer=0.3, losses=((12, 1),), notice=2)
    return ToyDriver(setup("rollart", steps=3), luck).run()


def count(records: Records, kind: type) -> int:
    """How many records are of a kind."""
    return sum(isinstance(record, kind) for _, _, record in records)


def again(driver: ToyDriver, records: Records) -> ReplayReport:
    """A replay of these records under the run's header."""
    return replay(header(driver.config), records)


def first(records: Records, kind: type) -> int:
    """Index of the first record of a kind."""
    return next(index for index, (_, _, record) in enumerate(records) if isinstance(record, kind))


def test_a_log_replays(driver: ToyDriver) -> None:
    report = again(driver, driver.records)
    assert report.difference is None
    assert report.events == count(driver.records, e.Event)
    assert report.commands == count(driver.records, c.Command)
    assert report.commands > 50


def test_a_log_replays_whatever_its_clock_was(driver: ToyDriver) -> None:
    shifted = [(seq, 3.0 * time + 7.0, record) for seq, time, record in driver.records]
    assert again(driver, shifted).difference is None


def test_a_changed_command_is_named(driver: ToyDriver) -> None:
    records = list(driver.records)
    index = first(records, c.StepEnvironment)
    seq, time, step = records[index]
    records[index] = (seq, time, msgspec.structs.replace(step, turn=17))
    report = again(driver, records)
    assert report.difference is not None
    assert "the log has StepEnvironment(" in report.difference
    assert "turn=17" in report.difference
    assert f"the replay {step}" in report.difference


def test_a_missing_command_is_named_with_its_event(driver: ToyDriver) -> None:
    records = list(driver.records)
    index = first(records, c.GenerateTurn)
    ready = index - 1
    assert isinstance(records[ready][2], e.EnvironmentReady)
    gone = records.pop(index)[2]
    report = again(driver, records)
    seq, time, _ = records[ready]
    assert report.difference == f"after event {seq} (EnvironmentReady) at {time:.6f} s: {gone} is missing in the log"


def test_a_log_that_breaks_off_in_the_middle_of_an_answer_differs(driver: ToyDriver) -> None:
    index = first(driver.records, c.TrainBatch)
    report = again(driver, driver.records[:index])
    assert report.difference is not None
    assert report.difference.endswith("is missing in the log")


def test_a_log_that_breaks_off_between_events_replays_as_far_as_it_goes(driver: ToyDriver) -> None:
    index = [i for i, (_, _, record) in enumerate(driver.records) if isinstance(record, e.Event)][20]
    report = again(driver, driver.records[:index])
    assert (report.difference, report.events) == (None, 20)


def test_an_invented_command_is_named(driver: ToyDriver) -> None:
    extra = (10**6, driver.records[-1][1], c.StopRun(id=10**6))
    report = again(driver, [*driver.records, extra])
    assert report.difference is not None
    assert report.difference.endswith("the log has StopRun(id=1000000), the replay None")


def test_another_policy_decides_otherwise(driver: ToyDriver) -> None:
    report = replay(header(setup("sync+", steps=3)), driver.records)
    assert report.difference is not None


def test_a_header_without_a_configuration_is_refused(driver: ToyDriver) -> None:
    broken = msgspec.structs.replace(header(driver.config), controller={"tasks": 3})
    with pytest.raises(RunLogError, match="run log: the controller's configuration cannot be read"):
        controller_of(broken)
