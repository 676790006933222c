"""What a Python user imports; the command line is a thin skin over it.

import rollart

scenario = rollart.load_scenario("experiments/scenarios/paper-128.yaml", ["training.batch_size=256"])
run = rollart.simulate(scenario, out="runs/mine")
print(run.summary["step_time_s"], run.summary["stages_s"])
print(rollart.check("runs/mine").ok)
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rollart
from rollart.benchmark import bench
from rollart.domain.errors import RunLogError
from rollart.planning.calibration import CalibrationReport
from rollart.planning.calibration import calibrate as _calibrate
from rollart.planning.plan_scenario import PlanOptions, SensitivityTable, plan_scenario
from rollart.planning.report import PlanReport
from rollart.report.output import write_text
from rollart.report.run_directory import write_results
from rollart.report.staging import staged
from rollart.report.summary import summarize
from rollart.runlog.invariants import InvariantReport, check_invariants
from rollart.runlog.reader import read_header, records
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.writer import FILE_NAME
from rollart.running import FakeTime, run_scenario
from rollart.scenario.load import load_scenario
from rollart.scenario.plan_file import plan_text
from rollart.scenario.scenario import Scenario
from rollart.sched.replay import ReplayReport, controller_of, replay
from rollart.sim import SimulationResult
from rollart.sim import simulate as _simulate

__all__ = [
    "CalibrationReport",
    "CheckReport",
    "FakeTime",
    "PlanOptions",
    "PlanReport",
    "Run",
    "Scenario",
    "SensitivityTable",
    "bench",
    "calibrate",
    "check",
    "compare",
    "load_scenario",
    "plan",
    "run",
    "simulate",
]

Progress = Callable[[int, int], None]
"""Told the steps that are done and all steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run: its summary (the content of summary.json), statistics, and folder if there is one."""

    summary: dict[str, Any]
    statistics: RunStatistics
    folder: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check of a run log found."""

    invariants: InvariantReport
    replay: ReplayReport

    @property
    def ok(self) -> bool:
        """Whether all invariants hold and the replay decided the same."""
        return self.invariants.violation is None and self.replay.difference is None

    def lines(self) -> list[str]:
        """The report in words."""
        invariants, replayed = self.invariants, self.replay
        counts = f"{invariants.trajectories} trajectories, {invariants.events} events, {invariants.commands} commands"
        return [
            f"invariants: {invariants.violation or 'hold'} ({counts})",
            f"replay: {replayed.difference or 'the same commands'} ({replayed.events} events)",
        ]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"ok": self.ok, "invariants": asdict(self.invariants), "replay": asdict(self.replay)}


def simulate(
    scenario: Scenario | str | Path,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    log: bool = True,
) -> Run:
    """Simulate a scenario (or a scenario file); with `out`, write a run directory, whole or not at all.

    `log=False` leaves the run log, the timeline and the Gantt chart away. Raises ScenarioError, CapacityError,
    TraceError or OutputError.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    job, workload = scenario.job(), scenario.workload()

    def on_step(version: int, _: float) -> None:
        if progress is not None:
            progress(version, job.steps)

    def run(log_path: Path | None) -> SimulationResult:
        return _simulate(job, workload, log_path=log_path, code_version=code_version(), on_step=on_step)

    if out is None:
        result = run(None)
        return Run(summary=_summary(result), statistics=result.statistics, folder=None)
    folder = Path(out)
    with staged(folder) as stage:
        result = run(stage / FILE_NAME if log else None)
        summary = _summary(result)
        write_results(stage, result.statistics, summary, log=log)
    return Run(summary=summary, statistics=result.statistics, folder=folder)


def run(
    scenario: Scenario | str | Path,
    *,
    out: str | Path,
    fake: FakeTime | None = None,
    address: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Run:
    """Run a scenario (or a scenario file) on real workers, or on fake ones; writes a run directory.

    `address`: of a Ray cluster for real workers; None: one is started on this machine. `resume`: go on with the run
    that was interrupted in `out`. `tell` is given a line for every training step of real workers, and for what fails
    of them.

    Raises ScenarioError, CapacityError, TraceError, InputError, OutputError, StartError, WorkerError, StuckError,
    RunLogError, or RunInterrupted after Ctrl-C.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    folder = Path(out)
    summary, statistics = run_scenario(
        scenario,
        out=folder,
        fake=fake,
        code_version=code_version(),
        progress=progress,
        tell=tell,
        address=address,
        resume=resume,
    )
    return Run(summary=summary, statistics=statistics, folder=folder)


def compare(
    scenario: Scenario | str | Path, policies: Sequence[str], *, seeds: int = 1, progress: Progress | None = None
) -> list[Run]:
    """Simulate a scenario under several policy presets, each with `seeds` seeds that follow the scenario's."""
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    return [
        simulate(scenario.with_changes(policy=policy, seed=scenario.seed + offset), progress=progress)
        for policy in policies
        for offset in range(seeds)
    ]


def plan(
    scenario: Scenario | str | Path,
    *,
    out: str | Path | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
) -> PlanReport:
    """The best plan of a scenario (or a scenario file) under its policy; with `out`, written as a plan file.

    The optimiser's best plans are judged by simulations, which are remembered. Raises CapacityError when nothing fits.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    report = plan_scenario(scenario, options or PlanOptions(), progress)
    if out is not None:
        comment = f"for {scenario.name}: predicted {report.best.predicted.step_s:.1f} s a step"
        best = report.best.plan
        # A scenario's own policy stays where it is, so that `--policy` can still be tried on the plan.
        chosen = None if best.policy == scenario.job().plan.policy else best.policy
        write_text(Path(out), plan_text(best.placement, comment, policy=chosen))
    return report


def calibrate(
    run: str | Path, scenario: Scenario | str | Path, *, progress: Progress | None = None
) -> CalibrationReport:
    """How far a scenario's costs are off on the machines of a real run (its folder), as factors on them.

    The scenario must have the plan that was run. Raises InputError where the run is another one, RunLogError where
    there is no readable log.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    return _calibrate(scenario, _log_of(run), progress)


def check(run: str | Path) -> CheckReport:
    """Check the run log in a run directory: invariants, and a replay; RunLogError if there is no readable log."""
    path = _log_of(run)
    header = read_header(path)
    bound = controller_of(header).policy.staleness.bound
    return CheckReport(
        invariants=check_invariants(records(path), header, staleness_bound=bound),
        replay=replay(header, records(path)),
    )


def code_version() -> str:
    """Version of the package, with the commit where it runs from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return rollart.__version__
    return f"{rollart.__version__}+{described}"


def _log_of(run: str | Path) -> Path:
    """The run log of a run directory, or the log itself."""
    path = Path(run)
    path = path / FILE_NAME if path.is_dir() else path
    if not path.is_file():
        raise RunLogError(f"{run}: no run log; give a run directory that has {FILE_NAME}")
    return path


def _summary(result: SimulationResult) -> dict[str, Any]:
    return summarize(result.statistics, result.use.as_dict())
