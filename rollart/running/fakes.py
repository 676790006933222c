"""Fake workers of a scenario, and the clock that they live by."""

from dataclasses import dataclass
from functools import partial

from rollart.domain.job import Job
from rollart.exec.clocks import LogicalClock, WallClock
from rollart.exec.execute import Crew
from rollart.exec.fake import fake_workers
from rollart.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeTime:
    """How time passes for fake workers."""

    speed: float | None = None
    """Seconds of the run per second of wall time; None: logical time, as fast as it goes."""


def fake_crew(scenario: Scenario, job: Job, time: FakeTime) -> Crew:
    """Fake workers; CapacityError when the plan does not fit its devices."""
    workload = scenario.workload()
    if time.speed is None:
        return Crew(make_clock=LogicalClock, make_workers=partial(fake_workers, job, workload))
    return Crew(make_clock=partial(WallClock, time.speed), make_workers=partial(fake_workers, job, workload))
