"""A job: all that a driver needs to run a plan, except the workload itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollart.domain.calibration import Calibration
from rollart.domain.cluster import Cluster
from rollart.domain.model import Model
from rollart.domain.plan import Plan
from rollart.domain.task import Task
from rollart.domain.training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """One engine loses its devices at `time_s` and gets them back after `away_s`."""

    time_s: float
    engine: int
    away_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong beside the environments (their failures belong to the workload)."""

    engine_mtbf_s: float | None = None
    """Mean time between failures of one engine, exponential; None: engines do not fail."""
    engine_restart_s: float = 60.0
    """Process start and model load of a restarted engine."""
    preemptions: tuple[Preemption, ...] = ()
    trainer_mtbf_s: float | None = None
    """Mean time between failures of the trainer, exponential; None: it does not fail."""
    trainer_restart_s: float = 120.0
    """Process start and checkpoint load of a restarted trainer."""
    reward_failed: float = 0.0
    """Share of reward calls that answer with an error."""
    reward_late: float = 0.0
    """Share of reward calls that do not answer in time."""
    reward_garbage: float = 0.0
    """Share of reward calls that answer with what is no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Number formats of the engines."""

    weights: str = "bf16"
    kv_cache: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Cluster, model, tasks, training and plan of a run."""

    name: str
    cluster: Cluster
    model: Model
    models: Mapping[str, Model] = field(default_factory=dict)
    """Further models by name, for judges."""
    tasks: tuple[Task, ...]
    training: Training
    plan: Plan
    precision: Precision = field(default_factory=Precision)
    costs: str = "roofline"
    """Where the engines' times come from: roofline, compact or tables (see rollart.costs.select)."""
    calibration: Calibration = field(default_factory=Calibration)
    faults: Faults = field(default_factory=Faults)
    steps: int
    warmup_steps: int = 1
    """Leading steps that the summary leaves out."""
    seed: int = 0
