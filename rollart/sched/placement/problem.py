"""A planning problem, and the data that its model is made from."""

from dataclasses import dataclass, field, replace

from rollart.domain.errors import CapacityError
from rollart.domain.job import Job
from rollart.domain.plan import Plan, PolicySpec
from rollart.domain.planning import Rules
from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand, demands, samples
from rollart.sched.placement.instance import Instance, instance
from rollart.sched.placement.kinds import EngineKind, engine_kinds
from rollart.sched.placement.policies import policies
from rollart.sched.placement.sample import TaskSample
from rollart.sched.placement.trainers import TrainerOption, trainer_options, without_slower
from rollart.workload.trajectory import Workload

MOST_DEVICES = 200_000
"""Of a cluster that is planned for; more is taken for a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be planned."""

    job: Job
    """Its plan is the starting point: what the model does not decide stays as it is there."""
    workload: Workload
    rules: Rules = field(default_factory=Rules)
    """Pinned and bounded decisions, limits and penalties; the objective is said where the problem is solved."""


class ProblemData:
    """Samples, demands and kinds of a problem, made once and shared by all that is asked about it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        check_size(problem.job)
        self._samples: list[TaskSample] = []
        self._demands: dict[int, list[TaskDemand]] = {}
        self._trainers: dict[int, list[TrainerOption]] = {}
        self._kinds: list[EngineKind] | None = None

    @property
    def kinds(self) -> list[EngineKind]:
        """All engine kinds that fit and are allowed."""
        if self._kinds is None:
            self._kinds = engine_kinds(self.problem.job, self.problem.rules.roles, self.problem.rules.engines)
        return self._kinds

    def samples(self, policy: PolicySpec) -> list[TaskSample]:
        """Groups with room for the members that a policy starts."""
        members = Composition.of(policy).redundant_members
        if not self._samples or self._samples[0].length.shape[1] < self._samples[0].task.group_size + members:
            self._samples = samples(self.problem.job, self.problem.workload, members)
        return self._samples

    def demands(self, policy: PolicySpec) -> list[TaskDemand]:
        """Demands under a policy's group rule."""
        members = Composition.of(policy).redundant_members
        if members not in self._demands:
            self._demands[members] = demands(self.problem.job, self.samples(policy), members)
        return self._demands[members]

    def trainers(self, policy: PolicySpec) -> list[TrainerOption]:
        """Trainer options for the lengths that a policy's group rule lets through."""
        members = Composition.of(policy).redundant_members
        if members not in self._trainers:
            job, rule = self.problem.job, self.problem.rules.trainer
            self._trainers[members] = without_slower(trainer_options(job, self.demands(policy), rule))
        return self._trainers[members]

    def instances(self) -> list[Instance]:
        """The model's data under every policy to choose from."""
        job, rules = self.problem.job, self.problem.rules
        return [
            instance(job, rules, policy, factor, self.kinds, self.demands(policy))
            for policy, factor in policies(job.plan.policy, rules)
        ]

    def of_plan(self, plan: Plan) -> Instance:
        """The data that predictions of a given plan need: demands and penalty, no kinds."""
        rules = self.problem.rules
        factor = next((f for p, f in policies(self.problem.job.plan.policy, rules) if p == plan.policy), 1.0)
        job = replace(self.problem.job, plan=replace(plan, placement=plan.placement))
        return instance(job, rules, plan.policy, factor, [], self.demands(plan.policy))


def check_size(job: Job) -> None:
    """Refuse clusters that nobody has; raises CapacityError."""
    for pool in job.cluster.pools.values():
        if pool.count > MOST_DEVICES:
            raise CapacityError(
                f"cluster.pools.{pool.name}.count: {pool.count} devices; plans are made for at most {MOST_DEVICES}"
            )
