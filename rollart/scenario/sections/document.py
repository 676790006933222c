"""The whole scenario file."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rollart.scenario.sections.base import Name, NonNegative, Positive, Section, Title
from rollart.scenario.sections.cluster import Catalogue, ClusterSection
from rollart.scenario.sections.execution import ExecutionSection
from rollart.scenario.sections.plan import PlacementSection, Policy, PolicySection
from rollart.scenario.sections.planner import PlannerSection
from rollart.scenario.sections.tasks import TaskSection, TrainingSection


def _name_or_fields(value: Any) -> Any:
    """Refuse other kinds here, in one message where a union would give one for each member."""
    if not isinstance(value, str | dict) or not value:
        raise ValueError("must be a model's name, the path of a config.json, or a mapping with its fields")
    return value


ModelChoice = Annotated[str | dict[str, Any], BeforeValidator(_name_or_fields)]


class PrecisionSection(Section):
    """Number formats of the engines."""

    weights: Literal["bf16", "fp16", "fp8", "int4", "mxfp4"] = Field(default="bf16", description="Of the weights")
    kv_cache: Literal["bf16", "fp16", "fp8"] = Field(default="bf16", description="Of the KV cache")


Factor = Annotated[float, Field(ge=1e-3, le=1e3)]
Chance = Annotated[float, Field(ge=0, le=1)]


class FaultsSection(Section):
    """What goes wrong beside the environments, whose failures belong to the workload."""

    engine_mtbf_s: Positive | None = Field(
        default=None, description="Mean time between failures of one engine; null: never"
    )
    engine_restart_s: NonNegative = Field(
        default=60.0, description="Process start and model load of a restarted engine"
    )
    preemption_trace: str | None = Field(default=None, description="CSV file with the columns time_s, engine, away_s")
    trainer_mtbf_s: Positive | None = Field(
        default=None, description="Mean time between failures of the trainer; null: never"
    )
    trainer_restart_s: NonNegative = Field(
        default=120.0, description="Process start and checkpoint load of a restarted trainer"
    )
    reward_failed: Chance = Field(default=0.0, description="Share of reward calls that answer with an error")
    reward_late: Chance = Field(default=0.0, description="Share of reward calls that do not answer in time")
    reward_garbage: Chance = Field(
        default=0.0, description="Share of reward calls that answer with what is no finite number"
    )

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.reward_failed + self.reward_late + self.reward_garbage > 1.0:
            raise ValueError("reward_failed, reward_late and reward_garbage must add up to at most 1")
        return self


class WeightDelaysSection(Section):
    """Seconds that software adds to what moving the weights takes."""

    push_s: NonNegative = Field(default=0.0, description="To a push")
    pull_s: NonNegative = Field(default=0.0, description="To the pull of an engine's host")
    update_s: NonNegative = Field(default=0.0, description="To installing a version on an engine")


class CalibrationSection(Section):
    """Factors on modelled times, as `rollart calibrate` measures them in a run."""

    engines: dict[Name, Factor] = Field(default={}, description="By pool: factor on the iteration times of its engines")
    trainer: Factor = Field(default=1.0, description="Factor on the time of a training step")
    weights: WeightDelaysSection = Field(
        default=WeightDelaysSection(), description="What software adds to the movement of weights"
    )


class ScenarioFile(Section):
    """A scenario: hardware, model, tasks, training and plan."""

    schema_version: Literal[1] = Field(default=1, description="Version of this form")
    name: Title = Field(description="Name, also of the results")
    description: str = Field(default="", description="What the scenario is about")
    model: ModelChoice = Field(
        description="Name in the catalogue or in `models`, path of a config.json, or the fields of one"
    )
    models: Catalogue = Field(default={}, description="Further models: the fields of their config.json by name")
    devices: Catalogue = Field(default={}, description="Further device kinds by name, in the catalogue's form")
    cluster: ClusterSection = Field(description="The hardware")
    tasks: list[TaskSection] = Field(min_length=1, max_length=1000, description="What is trained on")
    training: TrainingSection = Field(description="What a training step does")
    policy: Policy = Field(default=PolicySection(), description="A preset's name, or a preset with parts that differ")
    placement: PlacementSection | None = Field(
        default=None, description="Which devices do what; default: a simple split"
    )
    planner: PlannerSection = Field(default=PlannerSection(), description="What `rollart plan` looks for")
    precision: PrecisionSection = Field(default=PrecisionSection(), description="Number formats of the engines")
    costs: Literal["roofline", "compact", "tables"] = Field(
        default="roofline",
        description="Engine times: from the data sheet, from fitted formulas, from measured operator tables",
    )
    calibration: CalibrationSection = Field(
        default=CalibrationSection(), description="How far the costs are off on these machines"
    )
    faults: FaultsSection = Field(default=FaultsSection(), description="What goes wrong")
    execution: ExecutionSection | None = Field(
        default=None, description="What `rollart run` needs and a simulation does not look at"
    )
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=6, description="Training steps")
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=1, description="Leading steps that the summary leaves out; fewer than steps"
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = Field(default=0, description="Seed of all chance")
