"""Problems for the tests: the small scenario with settings, and its data."""

from functools import cache
from itertools import count
from pathlib import Path

from rollart.scenario.load import load_scenario
from rollart.scenario.planner_rules import rules_of
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.problem import Problem, ProblemData

HERE = Path(__file__).resolve()
FOLDERS = {"duo": HERE.parent, "paper-128": HERE.parents[3] / "experiments/scenarios"}


def tick():
    """A clock that goes on by a microsecond a look: nothing ever takes too long."""
    ticks = count()
    return lambda: next(ticks) / 1e6


def problem(name: str, *settings: str) -> Problem:
    """A problem of a scenario with settings."""
    scenario = load_scenario(FOLDERS[name] / f"{name}.yaml", settings)
    return Problem(job=scenario.job(), workload=scenario.workload(), rules=rules_of(scenario.document.planner))


@cache
def instance_of(name: str, *settings: str) -> Instance:
    """The model's data under the scenario's own policy."""
    return ProblemData(problem(name, *settings)).instances()[0]
