"""The rollout model: a mixed-integer program over columns, solved to a bound.

Symbols, with the equation that each family is named by in docs/planner.md:

    n[e]      engines of kind e (integer)
    w[k]      engines of its kind that work at column k (a task at a concurrency)
    lambda    steps per second that the rollout can feed
    (1) rate          sum over the columns of task d of rate[k] w[k] >= lambda * batch[d] * started / trained
    (2) engines       sum over the columns of kind e of w[k] <= n[e]
    (3) devices       sum over the kinds of a pool of TP[e] n[e] <= devices that the trainer leaves
    (4) concurrency   sum over all columns of c[k] w[k] <= environment slots; per task <= batches under way

Maximise lambda. The barrier of a batch that ends before the next begins is not in the model: it is added to the
prediction of a solution, so that the bound stays optimistic.
"""

from dataclasses import dataclass

from ortools.linear_solver import pywraplp

from rollart.domain.job import Job
from rollart.sched.placement.columns import Column, EngineKind
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSolution:
    """How the devices that the trainer leaves roll out, and how good it could be at best."""

    rate: float
    """Steps per second."""
    bound: float
    """No division of these devices feeds more steps per second (of the model)."""
    engines: dict[int, int]
    """Kind -> engines."""
    work: dict[int, float]
    """Column -> engines that work there."""


class RolloutModel:
    """One model for a job; the devices that are free for rollout are its parameter."""

    def __init__(
        self,
        job: Job,
        demands: list[TaskDemand],
        kinds: list[EngineKind],
        columns: list[Column],
        composition: Composition,
    ) -> None:
        solver = pywraplp.Solver.CreateSolver("SCIP")
        self._solver = solver
        self._kinds, self._columns = kinds, columns
        limits = [job.cluster.pools[kind.pool].count // kind.tensor_parallel for kind in kinds]
        self._engines = [solver.IntVar(0, limit, f"n{e}") for e, limit in enumerate(limits)]
        self._work = [solver.NumVar(0, limits[column.kind], f"w{k}") for k, column in enumerate(columns)]
        self._hours = solver.NumVar(0, solver.infinity(), "lambda")
        """Steps per hour: lambda in a unit of order one."""
        self._rates(demands, composition)
        self._engine_limits()
        self._devices = self._device_limits(job)
        self._concurrency(job, demands, composition)
        solver.Maximize(self._hours)

    def _rates(self, demands: list[TaskDemand], composition: Composition) -> None:
        for d, demand in enumerate(demands):
            served = sum(
                column.rate * 3600.0 * self._work[k] for k, column in enumerate(self._columns) if column.task == d
            )
            started = demand.trajectories * composition.started_per_trained
            self._solver.Add(served >= started * self._hours)

    def _engine_limits(self) -> None:
        for e, engines in enumerate(self._engines):
            used = sum(self._work[k] for k, column in enumerate(self._columns) if column.kind == e)
            self._solver.Add(used <= engines)

    def _device_limits(self, job: Job) -> dict[str, pywraplp.Constraint]:
        limits = {}
        for name, pool in job.cluster.pools.items():
            used = sum(
                kind.tensor_parallel * self._engines[e] for e, kind in enumerate(self._kinds) if kind.pool == name
            )
            if not isinstance(used, int):
                limits[name] = self._solver.Add(used <= pool.count)
        return limits

    def _concurrency(self, job: Job, demands: list[TaskDemand], composition: Composition) -> None:
        running = [column.concurrency * work for column, work in zip(self._columns, self._work, strict=True)]
        self._solver.Add(sum(running) <= job.plan.placement.environment_slots)
        for d, demand in enumerate(demands):
            most = demand.trajectories * composition.started_per_trained * (1 + composition.batches_ahead)
            self._solver.Add(
                sum(run for column, run in zip(self._columns, running, strict=True) if column.task == d) <= most
            )

    def solve(
        self, free: dict[str, int], *, relaxed: bool = False, time_limit_s: float = 30.0
    ) -> RolloutSolution | None:
        """The best rollout on the free devices of each pool; None when no task mix can be served at all.

        `relaxed` lets engines be fractions: faster, and its rate is a bound.
        """
        for name, limit in self._devices.items():
            limit.SetUb(free[name])
        for engines in self._engines:
            engines.SetInteger(not relaxed)
        self._solver.SetTimeLimit(max(1, int(time_limit_s * 1000)))
        status = self._solver.Solve()
        if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            return None
        rate = self._hours.solution_value() / 3600.0
        if rate <= 0:
            return None
        bound = rate if relaxed else max(rate, self._solver.Objective().BestBound() / 3600.0)
        return RolloutSolution(
            rate=rate,
            bound=bound,
            engines={
                e: round(engines.solution_value())
                for e, engines in enumerate(self._engines)
                if engines.solution_value() > 0.5
            },
            work={k: work.solution_value() for k, work in enumerate(self._work) if work.solution_value() > 1e-6},
        )
