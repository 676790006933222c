"""Runs of the executor on fake workers, with everything that they said."""

import asyncio
from collections.abc import Mapping

from rollart.costs.interface import TrainingCosts
from rollart.domain.job import Job
from rollart.exec.clocks import LogicalClock, WallClock
from rollart.exec.driver import Driver
from rollart.exec.fake.host import Models
from rollart.exec.fake.workers import FakeWorkers
from rollart.runlog.reducer import Reducer
from rollart.runlog.writer import RunLogWriter
from rollart.sched.controller import Controller
from rollart.sched.run_header import run_header
from rollart.sched.setup import controller_config
from rollart.workload.trajectory import Workload
from tests.modelled.toys import ToyCosts, ToyTraining
from tests.sim.runs import Finished, Records, toy_kinds


def toy_models(
    job: Job,
    workload: Workload,
    *,
    costs: Mapping[str, ToyCosts] | None = None,
    training: TrainingCosts | None = None,
    kv_blocks: int = 4096,
) -> Models:
    """What toy workers are made from; `costs` by engine group."""
    return Models(
        job=job, workload=workload, kinds=toy_kinds(job, costs, kv_blocks), training=training or ToyTraining()
    )


def run(models: Models, *, speed: float | None = None) -> Finished:
    """Drive fake workers under the logical clock, or at so many times the speed of the wall clock."""
    job = models.job
    config = controller_config(job)
    header = run_header(job, config, driver="exec", code_version="test")
    records, reducer = Records(), Reducer(header)

    async def drive(log: RunLogWriter) -> None:
        clock = LogicalClock() if speed is None else WallClock(speed)
        await Driver(Controller(config), log, clock, lambda desk: FakeWorkers(models, clock, desk)).run()

    with RunLogWriter(None, header, (records, reducer)) as log:
        asyncio.run(drive(log))
    return Finished(header=header, records=records.records, statistics=reducer.statistics(), simulation=None)
