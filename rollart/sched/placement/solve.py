"""Solving: from a problem to the best plans of the model, with their bound.

The entry point of the model's side of the planner; whoever judges candidates by simulation starts here. All programs
are solved on one core, one after the other, so that the same problem has the same plan on every machine; a report whose
status is `time limit` is the exception, and says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rollart.domain.errors import CapacityError
from rollart.domain.plan import Plan
from rollart.domain.planning import Limits, Objective
from rollart.sched.placement.alternatives import best_candidates
from rollart.sched.placement.binding import binding_of, infeasible
from rollart.sched.placement.candidates import candidate_of, functions_cost
from rollart.sched.placement.cheapest import Terms, cheapest
from rollart.sched.placement.floor import floor_of
from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.problem import Problem, ProblemData
from rollart.sched.placement.report import Candidate, SolveReport
from rollart.sched.placement.shortest import shortest
from rollart.sched.placement.sites import Site, sites

__all__ = ["Problem", "predict", "solve"]

_LONGEST_S = 1e7
_COST_STEPS = 64.0
"""The cheapest step is looked for among those up to so many times the shortest."""


def solve(
    problem: Problem,
    *,
    clock: Callable[[], float],
    objective: Objective = Objective.STEP_TIME,
    limits: Limits | None = None,
    time_limit_s: float = 30.0,
    top: int = 3,
    seed: int = 0,
    workers: int = 1,  # noqa: ARG001 - the programs are small; the plan must not depend on how many cores there are
) -> SolveReport:
    """The best `top` plans, different in substance; `clock` gives seconds, the limit is for solving, not for the data.

    `limits` replace those of the problem's rules. Raises CapacityError, with the constraints that bind, where nothing
    fits.
    """
    started = clock()
    if limits is not None:
        problem = replace(problem, rules=replace(problem.rules, limits=limits))
    data = ProblemData(problem)
    places = [site for one in data.instances() for site in sites(one, data.trainers(one.policy))] if data.kinds else []
    oracle = Oracle(clock, clock() + time_limit_s)
    found = _search(problem, places, oracle, objective) if places else None
    if found is None:
        raise infeasible(data, places, oracle)
    proven = oracle.left_s > 0 and not oracle.doubtful
    candidates = best_candidates(found.first, found.behind, objective, found.terms, oracle, top)
    if not candidates:
        raise CapacityError("plan: the model has a plan, but no engine groups for it were found; raise the time limit")
    best = candidates[0].value
    return SolveReport(
        status="optimal" if proven and oracle.left_s > 0 else "time limit",
        objective=objective,
        candidates=tuple(candidates),
        bound=max(found.bound, best) if objective.maximised else min(found.bound, best),
        floor=floor_of(data, objective, clock),
        wall_s=clock() - started,
        seed=seed,
        binding=binding_of(found.first, candidates[0]),
    )


def predict(problem: Problem, plan: Plan, objective: Objective = Objective.STEP_TIME) -> Candidate | None:
    """What the model expects of a given plan; None where an engine or the trainer does not fit, or a task starves."""
    return candidate_of(ProblemData(problem).of_plan(plan), plan, objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The best answer, the bound of the objective, and where to look for alternatives."""

    first: Answer
    bound: float
    terms: Terms
    behind: tuple[tuple[float, Site], ...]


def _search(problem: Problem, places: list[Site], oracle: Oracle, objective: Objective) -> _Found | None:
    limits = problem.rules.limits
    longest_s = limits.step_s or _LONGEST_S
    quick = shortest(places, oracle, longest_s=longest_s)
    if quick is None:
        return None
    by_duration = objective is Objective.STEP_TIME
    terms = Terms(
        functions_cost=functions_cost(places[0].instance),
        longest_s=longest_s if by_duration else min(longest_s, quick.answer.step_s * _COST_STEPS),
        cost_per_step=limits.cost_per_step or float("inf"),
        by_duration=by_duration,
    )
    if by_duration and limits.cost_per_step is None:
        return _Found(first=quick.answer, bound=quick.bound, terms=terms, behind=quick.behind)
    # No site keeps a shorter step, whatever its penalty.
    least_s = quick.bound / max(place.instance.penalty for place in places)
    best = cheapest(places, oracle, least_s, terms)
    if best is None:
        return None
    bound = problem.job.training.batch_size / best.bound if objective.maximised else best.bound
    return _Found(first=best.answer, bound=bound, terms=terms, behind=quick.behind)
