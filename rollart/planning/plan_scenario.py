"""Plans a scenario: solve the model, let the simulator judge the best plans, say how good the winner is."""

import time
from dataclasses import dataclass
from pathlib import Path

from rollart.domain.planning import Limits, Objective
from rollart.planning.evaluator import Evaluator, Progress, Workers
from rollart.planning.memory import Memory, default_path
from rollart.planning.report import PlanReport
from rollart.scenario.scenario import Scenario
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.report import Candidate, SolveReport
from rollart.sched.placement.solve import Problem, solve
from rollart.sched.placement.trial import Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How a scenario is planned."""

    objective: Objective = Objective.STEP_TIME
    limits: Limits | None = None
    time_limit_s: float = 30.0
    """Of the optimiser; judging takes as long as it takes."""
    top: int = 3
    """Plans that the simulator judges."""
    repetitions: int = 8
    """Most simulations of a plan while the winner is chosen; 0: the model alone decides."""
    counted_steps: int = 4
    """Steps of a simulation behind its warm-up."""
    workers: int | None = None
    """Processes that simulate; None: one for each core."""
    seed: int | None = None
    """Of the solver and the sample of the workload; None: the scenario's."""
    memory: Path | None = None
    """File of remembered simulations; None: the default one."""


def plan_scenario(
    scenario: Scenario, options: PlanOptions, progress: Progress | None = None, *, evaluate: Evaluator | None = None
) -> PlanReport:
    """The best plan of a scenario; `evaluate` takes the place of one with workers and memory of its own.

    Raises CapacityError where nothing fits, ScenarioError for what contradicts.
    """
    seed = scenario.seed if options.seed is None else options.seed
    solved = solve(
        Problem(job=scenario.job(), workload=scenario.workload(seed)),
        clock=time.perf_counter,
        objective=options.objective,
        limits=options.limits,
        time_limit_s=options.time_limit_s,
        top=options.top,
        seed=seed,
        workers=options.workers or 1,
    )
    if not options.repetitions:
        return PlanReport(solved=solved, verdict=None, simulated=0, remembered=0, judged_s=0.0)
    if evaluate is not None:
        return _judged(scenario, solved, options, evaluate)
    memory = Memory(options.memory or default_path())
    try:
        with Workers(options.workers) as workers:
            return _judged(scenario, solved, options, Evaluator(scenario, workers, memory, progress))
    finally:
        memory.close()


def _judged(scenario: Scenario, solved: SolveReport, options: PlanOptions, evaluate: Evaluator) -> PlanReport:
    began, simulated_before = time.perf_counter(), evaluate.simulated
    judge = Judge(
        trials=Trials(job=scenario.job(), counted_steps=options.counted_steps),
        objective=options.objective,
        limits=options.limits or Limits(),
        most_repetitions=options.repetitions,
    )
    plans = [candidate.plan for candidate in solved.candidates]
    verdict = judge.verdict(plans, evaluate, [_surcharge(one, solved.objective) for one in solved.candidates])
    simulated = evaluate.simulated - simulated_before
    return PlanReport(
        solved=solved,
        verdict=verdict,
        simulated=simulated,
        remembered=verdict.simulations - simulated,
        judged_s=time.perf_counter() - began,
    )


def _surcharge(candidate: Candidate, objective: Objective) -> float:
    """What the stated penalties multiply the loss of a candidate by."""
    predicted = candidate.predicted
    if objective is Objective.STEP_TIME:
        return candidate.value / predicted.step_s
    if objective is Objective.COST:
        return candidate.value / predicted.cost_per_step
    return 1.0
