"""The search: bound every trainer option, solve the promising ones, let the simulator judge the best few.

The model splits at the trainer: an option fixes the devices that are left, and the best rollout on them is one
mixed-integer program. The relaxations of all options are solved first; an option whose optimistic step time is no
better than what has been found is never solved, and the smallest optimistic step time is the proven bound.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from rollart.costs.job_costs import fetch_s
from rollart.costs.weights import host_to_device_s
from rollart.domain.errors import CapacityError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Placement, Plan
from rollart.sched.placement.columns import Column, EngineKind, columns, engine_kinds
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand, demands
from rollart.sched.placement.model import RolloutModel, RolloutSolution
from rollart.sched.placement.trainers import TrainerOption, trainer_options
from rollart.workload.trajectory import Workload

Evaluate = Callable[[Plan, int], float]
"""Simulated step time, in seconds, of a plan under a seed."""

_SERVED_SHARE = 0.05
"""A group suits a task when it does at least this part of the task's work in the model."""
_FRESH_SEED = 1000
"""Seeds from here on judge the winner; those from 0 on choose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan with its predicted step time, and the simulated ones if it was judged."""

    plan: Plan
    predicted_s: float
    training_s: float
    rollout_s: float
    simulated_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """The winner and how good it is proven to be."""

    status: str
    """`optimal` (of the model), or `time limit` when some options were left unsolved."""
    best: Candidate
    bound_s: float
    """No plan of the model has a smaller predicted step time."""
    alternatives: tuple[Candidate, ...]
    wall_s: float

    @property
    def gap(self) -> float:
        """|best predicted - bound| / |best predicted| of the model, over all candidates."""
        best = min(one.predicted_s for one in (self.best, *self.alternatives))
        return abs(best - self.bound_s) / best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A trainer option with the optimistic step time of its relaxation."""

    trainer: TrainerOption
    fetch_s: float
    load_s: float
    free: dict[str, int]
    optimistic_s: float


class _Search:
    def __init__(self, job: Job, workload: Workload, clock: Callable[[], float], time_limit_s: float) -> None:
        self._job = job
        self._clock = clock
        self._ends_s = clock() + time_limit_s
        self._demands: list[TaskDemand] = demands(job, workload)
        self._kinds: list[EngineKind] = engine_kinds(job)
        if not self._kinds:
            raise CapacityError(f"plan: no pool has an engine that holds {job.model.name} and a whole trajectory")
        self._columns: list[Column] = list(columns(self._kinds, self._demands))
        size = max(task.group_size for task in job.tasks)
        self._composition = Composition.of(job.plan.policy, size)
        self._model = RolloutModel(job, self._demands, self._kinds, self._columns, self._composition)

    @property
    def time_left_s(self) -> float:
        return self._ends_s - self._clock()

    def run(self, most: int) -> tuple[list[Candidate], float, bool]:
        """The best candidates, the bound, and whether it is proven for all options."""
        options = sorted(self._options(), key=lambda option: option.optimistic_s)
        if not options:
            raise CapacityError(f"plan: no trainer for {self._job.model.name} fits beside an engine in this cluster")
        found: list[Candidate] = []
        bound_s, proven = math.inf, True
        for option in options:
            enough = len(found) >= most and option.optimistic_s >= sorted(c.predicted_s for c in found)[most - 1]
            if enough or (found and self.time_left_s <= 0):
                best_s = min(c.predicted_s for c in found)
                proven = enough or option.optimistic_s >= best_s
                bound_s = min(bound_s, max(option.optimistic_s, 0.0))
                break
            solved = self._model.solve(option.free, time_limit_s=max(1.0, self.time_left_s / 2))
            if solved is None:
                continue
            bound_s = min(bound_s, self._step_s(option, 1.0 / solved.bound))
            found.append(self._candidate(option, solved))
        found.sort(key=lambda candidate: candidate.predicted_s)
        return found, min(bound_s, found[0].predicted_s), proven

    def _options(self) -> list[_Option]:
        options = []
        for trainer in trainer_options(self._job, self._demands):
            placed = trainer.placement
            free = {name: pool.count for name, pool in self._job.cluster.pools.items()}
            free[placed.pool] -= placed.devices
            relaxed = self._model.solve(free, relaxed=True)
            if relaxed is None:
                continue
            fetched_s, load_s = self._update_s(trainer, free)
            option = _Option(trainer=trainer, fetch_s=fetched_s, load_s=load_s, free=free, optimistic_s=0.0)
            options.append(replace(option, optimistic_s=self._step_s(option, 1.0 / relaxed.rate)))
        return options

    def _update_s(self, trainer: TrainerOption, free: dict[str, int]) -> tuple[float, float]:
        """Seconds to fetch new weights to the engines' hosts, and to load them, over the slowest path there is."""
        kinds = [kind for kind in self._kinds if free[kind.pool] >= kind.tensor_parallel]
        weight_bytes = kinds[0].costs.weight_bytes
        fetched_s = fetch_s(self._job, trainer.placement, [kind.pool for kind in kinds], weight_bytes)
        load_s = max(
            host_to_device_s(weight_bytes, kind.tensor_parallel, self._job.cluster.pools[kind.pool].device)
            for kind in kinds
        )
        return fetched_s, load_s

    def _step_s(self, option: _Option, rollout_s: float) -> float:
        return self._composition.step_s(rollout_s, option.trainer.step_s, option.fetch_s, option.load_s)

    def _candidate(self, option: _Option, solved: RolloutSolution) -> Candidate:
        rollout_s = 1.0 / solved.rate
        if self._composition.barrier:
            rollout_s = max(rollout_s, max(self._columns[k].longest_s for k in solved.work))
        return Candidate(
            plan=Plan(placement=self._placement(option, solved), policy=self._job.plan.policy),
            predicted_s=self._step_s(option, rollout_s),
            training_s=option.trainer.step_s,
            rollout_s=rollout_s,
        )

    def _placement(self, option: _Option, solved: RolloutSolution) -> Placement:
        names = {e: f"{self._kinds[e].pool}-tp{self._kinds[e].tensor_parallel}" for e in solved.engines}
        groups = tuple(
            EngineGroup(
                name=names[e],
                pool=self._kinds[e].pool,
                engines=count,
                tensor_parallel=self._kinds[e].tensor_parallel,
            )
            for e, count in solved.engines.items()
        )
        return replace(
            self._job.plan.placement,
            engine_groups=groups,
            trainer=option.trainer.placement,
            affinity={demand.task: self._suited(d, solved, names) for d, demand in enumerate(self._demands)},
        )

    def _suited(self, task: int, solved: RolloutSolution, names: dict[int, str]) -> tuple[str, ...]:
        """Groups that do a part of the task's work."""
        served: dict[int, float] = {}
        for k, work in solved.work.items():
            column = self._columns[k]
            if column.task == task and column.kind in names:
                served[column.kind] = served.get(column.kind, 0.0) + work * column.rate
        total = sum(served.values())
        return tuple(names[e] for e, rate in sorted(served.items()) if rate >= _SERVED_SHARE * total)


def plan(
    job: Job,
    workload: Workload,
    evaluate: Evaluate | None,
    *,
    clock: Callable[[], float],
    time_limit_s: float = 30.0,
    top: int = 3,
    repetitions: int = 1,
) -> PlanReport:
    """The plan with the smallest step time: the best `top` of the model, judged by `evaluate` under common seeds.

    Without `evaluate` the model alone decides. `clock` gives seconds, for the time limit. Raises CapacityError when
    nothing fits.
    """
    started = clock()
    search = _Search(job, workload, clock, time_limit_s)
    found, bound_s, proven = search.run(top)
    best, *others = found[:top]
    if evaluate is not None:
        judged = [
            replace(one, simulated_s=tuple(evaluate(one.plan, seed) for seed in range(repetitions)))
            for one in found[:top]
        ]
        judged.sort(key=lambda one: statistics.fmean(one.simulated_s))
        fresh = tuple(evaluate(judged[0].plan, _FRESH_SEED + seed) for seed in range(repetitions))
        best, others = replace(judged[0], simulated_s=fresh), judged[1:]
    return PlanReport(
        status="optimal" if proven else "time limit",
        best=best,
        bound_s=bound_s,
        alternatives=tuple(others),
        wall_s=clock() - started,
    )
