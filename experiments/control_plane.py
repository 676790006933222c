"""What the control plane costs: 512 engines, some 10,000 trajectories at once, on fake workers.

    python experiments/control_plane.py

Two figures. *All in one process*: driver, messages, journal, run log, and the fake workers, under the logical clock.
*The driver alone*: the same event messages again, decoded, decided on by a fresh controller, journaled and logged, and
the commands encoded; this is what a real run's driver does. CPU seconds, since the machine may be shared.
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from rollart.benchmark import bench_job, bench_workload
from rollart.cli.present import number, show_table
from rollart.domain.commands import COMMANDS
from rollart.domain.events import Event
from rollart.domain.job import Job
from rollart.exec.clocks import LogicalClock
from rollart.exec.driver import Driver
from rollart.exec.fake import fake_workers, wire
from rollart.exec.journal import Journal
from rollart.exec.journaled_log import JournaledLog
from rollart.exec.ports import Desk, WorkerFactory, WorkerSet
from rollart.runlog.reducer import Reducer
from rollart.runlog.writer import RunLogWriter
from rollart.sched.controller import Controller
from rollart.sched.dispatch import Dispatch
from rollart.sched.run_header import run_header
from rollart.sched.setup import controller_config

ENGINES = 512
TRAJECTORIES_PER_ENGINE = 9
"""In a batch; two batches and the redundant trajectories are under way at once."""
TURNS = 10
STEPS = 1
RESULTS = Path(__file__).parent / "results" / "control_plane.json"
TARGET_MS = 1.0
"""CPU milliseconds a turn that the driver may take."""

Message = tuple[float, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What one part took."""

    part: str
    events: int
    turns: int
    cpu_s: float

    @property
    def events_per_s(self) -> float:
        """Events per CPU second."""
        return self.events / self.cpu_s

    @property
    def ms_per_turn(self) -> float:
        """CPU milliseconds a turn."""
        return 1e3 * self.cpu_s / self.turns


class Recorder:
    """Keeps every event with its time, and the most trajectories that were under way."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.most_active = 0
        self.controller: Controller | None = None

    def listen(self, make: WorkerFactory) -> WorkerFactory:
        """Workers whose reports pass by here."""

        def recorded(desk: Desk) -> WorkerSet:
            def report(event: Event) -> None:
                self.messages.append((desk.clock.now, wire.encode(event)))
                desk.report(event)
                assert self.controller is not None
                self.most_active = max(self.most_active, self.controller.state.active)

            return make(replace(desk, report=report))

        return recorded


def control_plane_job(engines: int) -> Job:
    """The job of `rollart bench` with shorter trajectories."""
    job = bench_job(engines, STEPS, TRAJECTORIES_PER_ENGINE)
    return replace(job, tasks=tuple(replace(task, max_turns=TURNS) for task in job.tasks))


def all_in_one(job: Job, folder: Path, recorder: Recorder) -> Figure:
    """Driver and fake workers under the logical clock."""
    config = controller_config(job)
    header = run_header(job, config, driver="exec", code_version="")
    reducer = Reducer(header)
    clock = LogicalClock()
    make = recorder.listen(fake_workers(job, bench_workload(), clock))
    started_s = time.process_time()
    with RunLogWriter(folder / "all.parquet", header, (reducer,)) as log:
        journal = Journal(folder / "all.journal")
        controller = recorder.controller = Controller(config)
        driver = Driver(controller, JournaledLog(log, journal), clock, make)
        asyncio.run(driver.run())
        journal.close()
    cpu_s = time.process_time() - started_s
    return Figure(part="driver and fake workers", events=driver.events, turns=reducer.statistics().turns, cpu_s=cpu_s)


def driver_alone(job: Job, folder: Path, messages: list[Message], turns: int) -> Figure:
    """What the driver does with the same messages."""
    config = controller_config(job)
    header = run_header(job, config, driver="exec", code_version="")
    now = [0.0]
    started_s = time.process_time()
    with RunLogWriter(folder / "alone.parquet", header, (Reducer(header),)) as log:
        journal = Journal(folder / "alone.journal")
        dispatch = Dispatch(Controller(config), JournaledLog(log, journal), partial(now.__getitem__, 0), lambda _: None)
        dispatch.carry_out_by(dict.fromkeys(COMMANDS, wire.encode))
        for time_s, message in messages:
            now[0] = time_s
            dispatch.report(wire.event_of(message))
        journal.close()
    cpu_s = time.process_time() - started_s
    return Figure(part="driver alone", events=dispatch.events, turns=turns, cpu_s=cpu_s)


def main() -> None:
    """Measure, show, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, default=ENGINES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    job, recorder = control_plane_job(options.engines), Recorder()
    with tempfile.TemporaryDirectory() as folder:
        together = all_in_one(job, Path(folder), recorder)
        alone = driver_alone(job, Path(folder), recorder.messages, together.turns)
    rows = [
        (each.part, number(each.events), number(each.turns), number(each.events_per_s), number(each.ms_per_turn))
        for each in (together, alone)
    ]
    title = f"{options.engines} engines, {recorder.most_active:,} trajectories at once (target: {TARGET_MS} ms a turn)"
    show_table(title, ("part", "events", "turns", "events/CPU s", "CPU ms/turn"), rows)
    figures = [
        asdict(each) | {"events_per_s": each.events_per_s, "ms_per_turn": each.ms_per_turn}
        for each in (together, alone)
    ]
    config = {"engines": options.engines, "turns": TURNS, "steps": STEPS, "seed": job.seed}
    result = {"config": config, "trajectories_at_once": recorder.most_active, "figures": figures}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
