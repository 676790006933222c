"""A linear or mixed-integer program of OR-Tools, with the few words that the model is written in."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ortools.linear_solver import pywraplp

INFINITY = float("inf")
GAP = 1e-3
"""Relative gap at which a mixed-integer program counts as solved; the search's own tolerance is wider."""

Variable: TypeAlias = pywraplp.Variable
Constraint: TypeAlias = pywraplp.Constraint
Terms: TypeAlias = Iterable[tuple[Variable, float]]


class Outcome(NamedTuple):
    """What solving found."""

    value: float
    """Of the objective."""
    bound: float
    """No solution has a better one."""


class Program:
    """Variables, constraints and one objective; solved on one core, so that equal programs have equal solutions."""

    def __init__(self, *, integer: bool) -> None:
        self.integer = integer
        self.proven = True
        """Whether the last answer stands: a solution to the gap, or the proof that there is none."""
        self._solver = pywraplp.Solver.CreateSolver("SCIP" if integer else "GLOP")

    def number(self, least: float = 0.0, most: float = INFINITY) -> Variable:
        """A continuous variable."""
        return self._solver.NumVar(least, most, "")

    def count(self, most: float) -> Variable:
        """A whole number; a continuous one where the program is linear."""
        return self._solver.IntVar(0, most, "") if self.integer else self._solver.NumVar(0, most, "")

    def at_most(self, limit: float, terms: Terms) -> Constraint:
        """Sum of variables times factors <= limit; each variable once."""
        constraint = self._solver.Constraint(-INFINITY, limit)
        for variable, factor in terms:
            constraint.SetCoefficient(variable, factor)
        return constraint

    def equals(self, value: float, terms: Terms) -> Constraint:
        """Sum of variables times factors = value."""
        constraint = self.at_most(value, terms)
        constraint.SetLb(value)
        return constraint

    def solve(
        self,
        terms: Terms,
        *,
        maximise: bool,
        time_limit_s: float = INFINITY,
        nodes: int | None = None,
        gap: float = GAP,
    ) -> Outcome | None:
        """Optimise a sum to a relative gap; None where there is no solution, or none was found in time or nodes.

        A limit on nodes stops at the same solution on every machine.
        """
        if nodes is not None:
            self._solver.SetSolverSpecificParametersAsString(f"limits/nodes = {nodes}\nlimits/gap = 0.05")
        objective = self._solver.Objective()
        objective.Clear()
        for variable, factor in terms:
            objective.SetCoefficient(variable, factor)
        objective.SetOptimizationDirection(maximise)
        self._solver.SetTimeLimit(max(1, int(time_limit_s * 1000)) if time_limit_s < INFINITY else 0)
        parameters = pywraplp.MPSolverParameters()
        parameters.SetDoubleParam(pywraplp.MPSolverParameters.RELATIVE_MIP_GAP, gap)
        status = self._solver.Solve(parameters)
        self.proven = status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.INFEASIBLE)
        if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            return None
        value = objective.Value()
        bound = objective.BestBound() if self.integer else value
        return Outcome(value=value, bound=max(value, bound) if maximise else min(value, bound))
