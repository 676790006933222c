"""Runs of workers alone and of whole simulations, with everything that they said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rollart.costs.interface import TrainingCosts
from rollart.domain.events import Event
from rollart.domain.job import Job
from rollart.modelled.assembly import EngineKind
from rollart.runlog.header import RunHeader
from rollart.runlog.invariants import InvariantReport, check_invariants
from rollart.runlog.reducer import Reducer
from rollart.runlog.schema import Record
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.window import Window
from rollart.runlog.writer import RunLogWriter
from rollart.sched.replay import ReplayReport, controller_of, replay
from rollart.sched.run_header import run_header
from rollart.sched.setup import controller_config
from rollart.serving.config import EngineConfig
from rollart.sim.clock import SimulatedClock
from rollart.sim.simulation import Simulation
from rollart.workload.trajectory import Workload
from tests.modelled.toys import ToyCosts, ToyTraining


class Bench:
    """A clock, and the events that workers on it report, with their times."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.events: list[tuple[float, Event]] = []

    def report(self, event: Event) -> None:
        self.events.append((self.clock.now, event))

    def at(self, time_s: float, call: Callable[[], object]) -> None:
        """Call something at a time."""
        self.clock.after(time_s - self.clock.now, lambda _: call(), None)

    def run(self, end_s: float = 1e6) -> list[tuple[float, Event]]:
        """Let time pass to `end_s`; all events."""
        self.at(end_s, self.clock.stop)
        self.clock.run()
        return self.events

    def answers(self) -> list[tuple[float, str, int]]:
        """(time, kind, command) of all answers."""
        return [(time_s, type(event).__name__, event.command_id) for time_s, event in self.events]


class Records:
    def __init__(self) -> None:
        self.records: list[tuple[int, float, Record]] = []

    def consume(self, window: Window) -> None:
        self.records.extend(window.in_order())


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A simulation that is over."""

    header: RunHeader
    records: list[tuple[int, float, Record]]
    statistics: RunStatistics
    simulation: Simulation | None

    def of(self, kind: type) -> list[tuple[float, Record]]:
        """(time, record) of all records of a kind."""
        return [(time_s, record) for _, time_s, record in self.records if isinstance(record, kind)]

    @property
    def step_times_s(self) -> list[float]:
        return [step.duration_s for step in self.statistics.steps]

    def invariants(self) -> InvariantReport:
        bound = controller_of(self.header).policy.staleness.bound
        return check_invariants(self.records, self.header, staleness_bound=bound)

    def replay(self) -> ReplayReport:
        return replay(self.header, self.records)


def toy_kinds(job: Job, costs: Mapping[str, ToyCosts] | None, kv_blocks: int) -> list[EngineKind]:
    """The engines of a job with toy costs; `costs` by engine group."""
    return [
        EngineKind(
            group=group,
            costs=(costs or {}).get(group.name) or ToyCosts(),
            config=EngineConfig(
                max_num_seqs=group.max_num_seqs,
                max_num_batched_tokens=group.max_num_batched_tokens,
                kv_blocks=kv_blocks,
                block_size=group.block_size,
                prefix_caching=group.prefix_caching,
                scheduling_lag=group.scheduling_lag,
            ),
        )
        for group in job.plan.placement.engine_groups
    ]


def run(
    job: Job,
    workload: Workload,
    *,
    costs: Mapping[str, ToyCosts] | None = None,
    training: TrainingCosts | None = None,
    kv_blocks: int = 4096,
) -> Finished:
    """Simulate with toy costs; `costs` by engine group."""
    kinds = toy_kinds(job, costs, kv_blocks)
    config = controller_config(job)
    header = run_header(job, config, driver="sim", code_version="test")
    records, reducer = Records(), Reducer(header)
    with RunLogWriter(None, header, (records, reducer)) as log:
        simulation = Simulation(job, workload, config, kinds, training or ToyTraining(), log)
        simulation.run()
    return Finished(header=header, records=records.records, statistics=reducer.statistics(), simulation=simulation)
