"""A scenario that has been read and checked, ready to be turned into a job and a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rollart.catalog.load import Catalog
from rollart.domain.batch import groups_per_batch
from rollart.domain.calibration import Calibration, WeightDelays
from rollart.domain.errors import InputError, ScenarioError
from rollart.domain.execution import ExecutionSettings
from rollart.domain.job import Job, Precision
from rollart.domain.model import Model
from rollart.domain.plan import Plan, PolicySpec
from rollart.scenario.checks import document_problems
from rollart.scenario.execution import execution_of
from rollart.scenario.faults import faults_of
from rollart.scenario.hardware import cluster_of, model_of, models_of
from rollart.scenario.placement_checks import placement_problems
from rollart.scenario.placing import placement_of
from rollart.scenario.problems import Problem, check_form, scenario_error
from rollart.scenario.sections.document import CalibrationSection, ScenarioFile
from rollart.scenario.sections.plan import PlanFile, PolicySection
from rollart.scenario.split import simple_split
from rollart.scenario.work import tasks_of, training_of
from rollart.scenario.workloads import check_workload, workload_files, workload_of
from rollart.scenario.yaml_file import read_mapping
from rollart.sched.presets import resolve
from rollart.workload.trajectory import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario; `origin` begins the messages about it, `folder` is where its relative files are."""

    document: ScenarioFile
    origin: str
    folder: Path

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.document.name

    @property
    def policy(self) -> str:
        """Name of the policy's preset."""
        return self.document.policy.preset

    @property
    def seed(self) -> int:
        """Seed of all chance."""
        return self.document.seed

    def with_changes(
        self, *, policy: str | None = None, seed: int | None = None, steps: int | None = None
    ) -> "Scenario":
        """The scenario under another preset, seed or number of steps.

        A preset replaces the policy with all its parts. Fewer steps shorten the warm-up to leave one to count.
        """
        changes: dict[str, object] = {}
        if policy is not None and policy != self.policy:
            changes["policy"] = {"preset": policy}
        if seed is not None:
            changes["seed"] = seed
        if steps is not None:
            changes |= {"steps": steps, "warmup_steps": min(self.document.warmup_steps, max(steps - 1, 0))}
        raw = self.document.model_dump() | changes
        return replace(self, document=check_form(ScenarioFile, raw, self.origin))

    def with_plan(self, path: str | Path) -> "Scenario":
        """The scenario with placement and policy of a plan file, where that has them."""
        path = Path(path)
        plan = check_form(PlanFile, read_mapping(path), path.name)
        if plan.placement is None and plan.policy is None:
            raise ScenarioError(f"{path.name}: has neither placement nor policy; a plan has at least one")
        changes = {
            "placement": plan.placement or self.document.placement,
            "policy": plan.policy or self.document.policy,
        }
        origin = f"{self.origin} with {path.name}"
        return replace(self, document=self.document.model_copy(update=changes), origin=origin)

    def job(self, *, policy: str | None = None, seed: int | None = None, steps: int | None = None) -> Job:
        """The job: everything a driver needs but the workload. Raises ScenarioError, listing what is wrong."""
        if (policy, seed, steps) != (None, None, None):
            return self.with_changes(policy=policy, seed=seed, steps=steps).job()
        try:
            return self._job()
        except InputError as error:
            text = str(error)
            raise ScenarioError(text if text.startswith(self.origin) else f"{self.origin}: {text}") from error

    def workload(self, seed: int | None = None) -> Workload:
        """The workload under a seed, by default the scenario's own."""
        try:
            return workload_of(self.document, self.folder, self.seed if seed is None else seed)
        except InputError as error:
            raise ScenarioError(f"{self.origin}: {error}") from error

    def workload_files(self) -> list[Path]:
        """The files that the workload is read from."""
        return workload_files(self.document, self.folder)

    def execution(self) -> ExecutionSettings:
        """What a real run needs beside the job. Raises ScenarioError."""
        try:
            return execution_of(self.document)
        except InputError as error:
            raise ScenarioError(f"{self.origin}: {error}") from error

    def _job(self) -> Job:
        document = self.document
        self._refuse(list(document_problems(document)))
        for task in document.tasks:
            check_workload(task, self.folder)
        cluster = cluster_of(document)
        catalogue = models_of(document)
        model = model_of(document, catalogue, self.folder)
        tasks, training = tasks_of(document), training_of(document)
        groups_per_batch(tasks, training.batch_size)
        precision = Precision(**document.precision.model_dump())
        if document.placement is None:
            placement = simple_split(cluster, model, training, precision)
        else:
            placement = placement_of(document.placement)
        job = Job(
            name=document.name,
            cluster=cluster,
            model=model,
            models=self._judge_models(catalogue),
            tasks=tasks,
            training=training,
            plan=Plan(placement=placement, policy=policy_of(document.policy)),
            precision=precision,
            costs=document.costs,
            calibration=calibration_of(document.calibration),
            faults=faults_of(document.faults, self.folder),
            steps=document.steps,
            warmup_steps=document.warmup_steps,
            seed=document.seed,
        )
        self._refuse(list(placement_problems(job)))
        return job

    def _judge_models(self, catalogue: Catalog[Model]) -> Mapping[str, Model]:
        groups = self.document.placement.engines if self.document.placement else []
        models: dict[str, Model] = {}
        for group in groups:
            if group.model is not None:
                try:
                    models[group.model] = catalogue[group.model]
                except InputError as error:
                    raise ScenarioError(f"placement.engines.{group.name}.model: {error}") from error
        return models

    def _refuse(self, problems: list[Problem]) -> None:
        if problems:
            raise scenario_error(self.origin, problems)


def policy_of(section: PolicySection) -> PolicySpec:
    """The policy: a preset with the parts that the section changes. Raises ScenarioError."""
    return resolve(section.preset, section.overrides())


def calibration_of(section: CalibrationSection) -> Calibration:
    """Factors and delays that the section names."""
    return Calibration(
        engines=section.engines, trainer=section.trainer, weights=WeightDelays(**section.weights.model_dump())
    )
