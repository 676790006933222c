"""What binds: in words, the constraints behind the best plan, and those that let no plan be.

A problem without a plan is asked again with one constraint less at a time; the first that helps is the one that is
named, with the smallest change that would do.
"""

from collections.abc import Iterator
from dataclasses import replace

from rollart.costs.job_costs import engine_costs
from rollart.domain.errors import CapacityError, RollArtError, ScenarioError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup
from rollart.domain.planning import Limits, Rules, TrainerRule
from rollart.sched.placement.kinds import TENSOR_PARALLEL, engine_kinds
from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.problem import Problem, ProblemData
from rollart.sched.placement.report import Candidate
from rollart.sched.placement.shortest import Shortest, shortest
from rollart.sched.placement.sites import Site, judge_devices, sites
from rollart.sched.placement.trainers import trainer_options

_BUSY = 0.97


def binding_of(answer: Answer, best: Candidate) -> tuple[str, ...]:
    """In words, what keeps the best plan from being better."""
    predicted, site = best.predicted, answer.site
    words = []
    if predicted.bottleneck == "rollout":
        full = [name for name, use in predicted.pools.items() if use.rollout_devices and use.busy > _BUSY]
        words += [f"devices: the engines on {name} are full" for name in full]
    else:
        words.append(
            f"{predicted.bottleneck}: training takes {predicted.training_s:.1f} s and new weights "
            f"{predicted.update_s:.1f} s of a step of {predicted.step_s:.1f} s"
        )
    for name, use in predicted.pools.items():
        if use.training_devices and not use.idle_devices:
            words.append(f"devices: {name} has no device left beside {use.training_devices} that train")
    budget = site.instance.rules.limits.budget_per_hour
    if budget is not None and answer.price_per_hour > 0.95 * budget:
        words.append(f"budget: {answer.price_per_hour:.4g} of {budget:.4g} an hour")
    slots = best.plan.placement.environment_slots
    running = sum(answer.rollout.work[k] for k in answer.rollout.work)
    if running and slots < site.instance.slots:
        words.append(f"prefix caches: {slots} environments at once, as many as they hold")
    return tuple(words)


def infeasible(data: ProblemData, places: list[Site], oracle: Oracle) -> RollArtError:
    """The error that names what lets no plan be."""
    problem = data.problem
    for find in (_no_kind, _no_trainer, _no_room, _limited, _ruled_out):
        reason = find(problem, data, places, oracle)
        if reason:
            return reason if isinstance(reason, RollArtError) else CapacityError(f"plan: {reason}")
    tasks = ", ".join(demand.task.name for demand in data.demands(problem.job.plan.policy))
    return CapacityError(f"plan: no division of {tasks} over the engines that fit can be kept up under this policy")


Finding = str | RollArtError | None


def _no_kind(problem: Problem, data: ProblemData, places: list[Site], oracle: Oracle) -> Finding:  # noqa: ARG001
    """No engine fits any pool, or the rules forbid all that do."""
    if data.kinds:
        return None
    free = engine_kinds(problem.job, problem.rules.roles, ())
    if free:
        names = ", ".join(kind.name for kind in free)
        return ScenarioError(f"planner.engines: the rules forbid every kind of engine that fits ({names}); allow one")
    return f"no pool has an engine that holds {problem.job.model.name} and a whole trajectory: {_misfit(problem.job)}"


def _misfit(job: Job) -> str:
    """Why the widest engine of the pool that comes closest does not fit."""
    reasons = []
    for pool in job.cluster.pools.values():
        widest = max(tp for tp in TENSOR_PARALLEL if tp <= max(1, min(pool.devices_per_node, pool.count)))
        group = EngineGroup(name=pool.name, pool=pool.name, engines=1, tensor_parallel=widest)
        try:
            tokens = engine_costs(job, group).kv_capacity_tokens
        except RollArtError as error:
            reasons.append(f"{pool.name}: {error}")
        else:
            limit = job.training.context_limit
            reasons.append(f"{pool.name}: TP {widest} leaves KV for {tokens} tokens, a trajectory may have {limit}")
    return reasons[0]


def _no_trainer(problem: Problem, data: ProblemData, places: list[Site], oracle: Oracle) -> Finding:  # noqa: ARG001
    """No trainer fits, alone or by the rules."""
    job, rule = problem.job, problem.rules.trainer
    policy = job.plan.policy
    if data.trainers(policy):
        return None
    asked = "" if rule.devices is None else f"{int(rule.devices.least)} asked, "
    there = "; ".join(
        f"{name}: {asked}{job.cluster.pools[name].count} there" for name in rule.pools or job.cluster.pools
    )
    free = trainer_options(job, data.demands(policy), TrainerRule())
    if free:
        least = min(free, key=lambda one: one.placement.devices).placement
        fits = f"{least.devices} on {least.pool} (TP {least.tensor_parallel}, PP {least.pipeline_parallel}) would fit"
        return ScenarioError(f"planner.trainer: no trainer fits ({there}); smallest change that fits: {fits}")
    return f"no trainer of {job.model.name} fits any pool ({there}), whatever its cut"


def _no_room(problem: Problem, data: ProblemData, places: list[Site], oracle: Oracle) -> Finding:  # noqa: ARG001
    """The smallest trainer leaves no engine."""
    job = problem.job
    judges = judge_devices(places[0].instance)
    wanted = []
    for trainer in data.trainers(job.plan.policy):
        for kind in data.kinds:
            pool = trainer.placement.pool
            asked = judges.get(kind.pool, 0) + kind.devices + (trainer.placement.devices if pool == kind.pool else 0)
            beside = judges.get(pool, 0) + trainer.placement.devices + (kind.devices if pool == kind.pool else 0)
            lacks = max(0, asked - job.cluster.pools[kind.pool].count)
            lacks = max(lacks, beside - job.cluster.pools[pool].count)
            wanted.append((lacks, kind.pool, asked))
    lacks, pool, asked = min(wanted)
    if not lacks:
        return None
    there = job.cluster.pools[pool].count
    return (
        f"{pool}: {asked} asked for the smallest trainer and one engine, {there} there; "
        f"smallest change that fits: {lacks} more devices in {pool}"
    )


def _limited(problem: Problem, data: ProblemData, places: list[Site], oracle: Oracle) -> Finding:  # noqa: ARG001
    """Without budget and deadline there is a plan."""
    limits = problem.rules.limits
    if limits == Limits():
        return None
    free = _solved(problem, replace(problem.rules, limits=Limits()), oracle)
    if free is None:
        return None
    if limits.step_s is not None and free.answer.step_s > limits.step_s:
        return f"deadline: {limits.step_s:.4g} s a step asked, the shortest step takes {free.answer.step_s:.4g} s"
    if limits.budget_per_hour is not None:
        least = _least_price(problem, oracle, free.answer.step_s)
        return (
            f"budget: {limits.budget_per_hour:.4g} an hour asked, the cheapest plan takes {least:.4g} an hour; "
            f"smallest change that fits: {least - limits.budget_per_hour:.4g} more"
        )
    return f"cost: no step costs {limits.cost_per_step:.4g} or less within the deadline"


def _least_price(problem: Problem, oracle: Oracle, step_s: float) -> float:
    """Price of an hour of the cheapest plan, whose steps may be long (or just meet the deadline)."""
    rules = replace(problem.rules, limits=Limits())
    longest_s = problem.rules.limits.step_s or step_s * 1000.0
    found = [oracle.cheapest(place, longest_s, integer=True) for place in _places(problem, rules)]
    return min(one.price_per_hour for one in found if one is not None)


def _ruled_out(problem: Problem, data: ProblemData, places: list[Site], oracle: Oracle) -> Finding:  # noqa: ARG001
    """Without one of the rules there is a plan."""
    for words, rules in _without(problem.rules):
        if _solved(problem, rules, oracle) is not None:
            return ScenarioError(
                f"planner.{words}: cannot be kept beside the other decisions; without it there is a plan"
            )
    return None


def _without(rules: Rules) -> Iterator[tuple[str, Rules]]:
    for index, rule in enumerate(rules.tasks):
        share = f"share {rule.share.least:g} to {rule.share.most:g}"
        words = f"tasks.{index} ({rule.task} on {rule.pool or 'any pool'}, {share})"
        yield words, replace(rules, tasks=rules.tasks[:index] + rules.tasks[index + 1 :])
    for index in range(len(rules.engines)):
        yield f"engines.{index}", replace(rules, engines=rules.engines[:index] + rules.engines[index + 1 :])
    yield "environment_slots", replace(rules, environment_slots=None)
    yield "trainer", replace(rules, trainer=TrainerRule())
    yield "engines and tasks", replace(rules, engines=(), tasks=())


def _places(problem: Problem, rules: Rules) -> list[Site]:
    data = ProblemData(replace(problem, rules=rules))
    return [site for one in data.instances() for site in sites(one, data.trainers(one.policy))] if data.kinds else []


def _solved(problem: Problem, rules: Rules, oracle: Oracle) -> Shortest | None:
    places = _places(problem, rules)
    return shortest(places, oracle) if places else None
