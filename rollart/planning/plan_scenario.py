"""Plans a scenario: solve the model, let the simulator judge the best plans, say how good the winner is."""

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from rollart.domain.job import Job
from rollart.domain.plan import Plan
from rollart.domain.planning import Limits, Objective
from rollart.planning.evaluator import Evaluator, Progress, Workers
from rollart.planning.memory import Memory, default_path
from rollart.planning.report import PlanReport
from rollart.scenario.planner_rules import rules_of
from rollart.scenario.scenario import Scenario
from rollart.sched.placement.judge import Allowance, Judge
from rollart.sched.placement.narrowed import FAR, narrowed
from rollart.sched.placement.report import Candidate, SolveReport
from rollart.sched.placement.sensitivity import predicted_sensitivity, simulated_sensitivity
from rollart.sched.placement.simplified import simplified
from rollart.sched.placement.solve import Problem, predict, solve
from rollart.sched.placement.trial import Trials
from rollart.workload.reshaped import AS_IT_IS, Reshape, ReshapedWorkload


class SensitivityTable(StrEnum):
    """How much is looked into what other worlds would change."""

    NONE = "none"
    MODEL = "model"
    """Each variation is solved again, all of them together within the time limit once more."""
    SIMULATED = "simulated"
    """The kept plan and the new one are simulated in each variation, and under drifting lengths too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How a scenario is planned; what is None is as the scenario has it."""

    objective: Objective | None = None
    limits: Limits | None = None
    time_limit_s: float = 30.0
    """Of the optimiser."""
    judging_limit_s: float = 120.0
    """Of the simulations that judge: those that would not end in time are not begun."""
    top: int = 4
    """Plans that the simulator judges."""
    repetitions: int = 8
    """Most simulations of a plan while the winner is chosen; 0: the model alone decides."""
    fresh_repetitions: int = 3
    """Simulations that judge the winner, under seeds that did not choose it."""
    counted_steps: int = 4
    """Steps of a simulation behind its warm-up, at least; small batches take more (`Trials`)."""
    sensitivity: SensitivityTable = SensitivityTable.NONE
    workers: int | None = None
    """Processes that simulate; None: one for each core."""
    seed: int | None = None
    """Of the solver and the sample of the workload."""
    memory: Path | None = None
    """File of remembered simulations; None: the default one."""


def plan_scenario(
    scenario: Scenario, options: PlanOptions, progress: Progress | None = None, *, evaluate: Evaluator | None = None
) -> PlanReport:
    """The best plan of a scenario; `evaluate` takes the place of one with workers and memory of its own.

    Raises CapacityError where nothing fits, ScenarioError for what contradicts.
    """
    planning = _Planning(scenario, options)
    solved = planning.with_simpler(planning.solve(planning.job, AS_IT_IS, options.time_limit_s))
    if evaluate is not None:
        return planning.report(solved, evaluate)
    memory = Memory(options.memory or default_path())
    try:
        with Workers(options.workers) as workers:
            return planning.report(solved, Evaluator(scenario, workers, memory, progress))
    finally:
        memory.close()


class _Planning:
    """One scenario under one set of options."""

    def __init__(self, scenario: Scenario, options: PlanOptions) -> None:
        self._rules = rules_of(scenario.document.planner)
        self.job = scenario.job()
        self._options = options
        self._objective = options.objective or self._rules.objective
        self._limits = options.limits or self._rules.limits
        self._seed = scenario.seed if options.seed is None else options.seed
        self._workload = scenario.workload(self._seed)

    def solve(self, job: Job, reshape: Reshape, time_limit_s: float) -> SolveReport:
        """The best plans of the model for a job on the workload, reshaped."""
        workload = self._workload
        if reshape != AS_IT_IS:
            workload = ReshapedWorkload(workload, reshape, job.training.context_limit)
        return solve(
            Problem(job=job, workload=workload, rules=self._rules),
            clock=time.perf_counter,
            objective=self._objective,
            limits=self._limits,
            time_limit_s=time_limit_s,
            top=self._options.top,
            seed=self._seed,
            workers=self._options.workers or 1,
        )

    def with_simpler(self, solved: SolveReport) -> SolveReport:
        """A solution with up to two candidates more, last: the best with fewer engine groups, and on a pool less."""
        if not self._options.repetitions:
            return solved
        best = solved.best
        merged = simplified(best.plan)
        ruled = self._rules.engines or self._rules.tasks
        fewer_groups = self._predicted([] if merged is None else [merged])
        fewer_pools = self._predicted([] if ruled else list(narrowed(best.plan)))
        near = [one for one in fewer_pools if self._behind(one, best) < FAR]
        near.sort(key=lambda one: self._behind(one, best))
        return replace(solved, candidates=(*solved.candidates, *fewer_groups, *near[:1]))

    def _predicted(self, plans: list[Plan]) -> list[Candidate]:
        problem = Problem(job=self.job, workload=self._workload, rules=self._rules)
        found = (predict(problem, plan, self._objective) for plan in plans)
        return [one for one in found if one is not None]

    def _behind(self, candidate: Candidate, best: Candidate) -> float:
        """So many times as bad as the best."""
        ratio = candidate.value / best.value
        return 1.0 / ratio if self._objective.maximised else ratio

    def report(self, solved: SolveReport, evaluate: Evaluator) -> PlanReport:
        """Judge the candidates of a solution and look at other worlds, as far as the options say."""
        began, simulated, asked = time.perf_counter(), evaluate.simulated, evaluate.asked
        judge = Judge(
            trials=Trials(job=self.job, counted_steps=self._options.counted_steps),
            objective=self._objective,
            limits=self._limits,
            most_repetitions=self._options.repetitions,
            fresh_repetitions=self._options.fresh_repetitions,
            allowance=self._allowance,
        )
        report = PlanReport(solved=solved, verdict=None, sensitivity=None, simulated=0, remembered=0, judged_s=0.0)
        if self._options.repetitions:
            plans = [candidate.plan for candidate in solved.candidates]
            surcharges = [_surcharge(candidate, self._objective) for candidate in solved.candidates]
            report = replace(report, verdict=judge.verdict(plans, evaluate, surcharges))
        report = self._with_sensitivity(report, judge, evaluate)
        new = evaluate.simulated - simulated
        return replace(
            report,
            simulated=new,
            remembered=evaluate.asked - asked - new,
            judged_s=time.perf_counter() - began,
        )

    def _allowance(self) -> Allowance:
        began_s = time.perf_counter()
        return Allowance(lambda: time.perf_counter() - began_s, self._options.judging_limit_s)

    def _with_sensitivity(self, report: PlanReport, judge: Judge, evaluate: Evaluator) -> PlanReport:
        until_s = time.perf_counter() + self._options.time_limit_s

        def solve_again(job: Job, reshape: Reshape) -> SolveReport | None:
            left_s = until_s - time.perf_counter()
            return self.solve(job, reshape, left_s) if left_s > 0 else None

        if self._options.sensitivity is SensitivityTable.MODEL:
            table = predicted_sensitivity(self.job, report.best.value, solve_again)
        elif self._options.sensitivity is SensitivityTable.SIMULATED:
            table = simulated_sensitivity(self.job, report.best, judge, solve_again, evaluate)
        else:
            return report
        return replace(report, sensitivity=table)


def _surcharge(candidate: Candidate, objective: Objective) -> float:
    """What the stated penalties multiply the loss of a candidate by."""
    predicted = candidate.predicted
    if objective is Objective.STEP_TIME:
        return candidate.value / predicted.step_s
    if objective is Objective.COST:
        return candidate.value / predicted.cost_per_step
    return 1.0
