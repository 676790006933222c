"""Engine kinds: a pool, a cut and a role, where the model and a whole trajectory fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollart.costs.interface import EngineCosts
from rollart.costs.job_costs import engine_costs
from rollart.costs.weights import host_to_device_s
from rollart.domain.cluster import Pool
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Role
from rollart.domain.planning import EngineRule, Range

TENSOR_PARALLEL = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """Engines of one pool with one cut and role."""

    group: EngineGroup
    """What one engine is set to, as a group of one."""
    costs: EngineCosts
    load_s: float
    """From the host's memory onto the engine's devices."""
    spread: int
    """Engines that the pool can have of it."""
    most: int
    """Of these, those that the rules allow."""
    kept: float = 1.0
    """Part of the histories that its prefix cache keeps, whatever the concurrency; 1: all, where the contexts fit."""

    @property
    def pool(self) -> str:
        """Where it runs."""
        return self.group.pool

    @property
    def devices(self) -> int:
        """Of one engine."""
        return self.group.tensor_parallel

    @property
    def role(self) -> Role:
        """Phases that it serves."""
        return self.group.role

    @property
    def name(self) -> str:
        """As a plan names its group."""
        spread = f"-ep{self.group.expert_parallel}" if self.group.expert_parallel > 1 else ""
        role = "" if self.role is Role.BOTH else f"-{self.role.value}"
        return f"{self.pool}-tp{self.group.tensor_parallel}{spread}{role}"


def engine_kinds(job: Job, roles: tuple[Role, ...], rules: tuple[EngineRule, ...]) -> list[EngineKind]:
    """Every kind that fits within a node and its memory and that the rules do not forbid."""
    kinds = []
    for pool in job.cluster.pools.values():
        for group in _groups(job, pool, roles):
            kind = engine_kind(job, group, rules)
            if kind is not None and kind.most > 0:
                kinds.append(kind)
    return kinds


def engine_kind(job: Job, group: EngineGroup, rules: tuple[EngineRule, ...] = ()) -> EngineKind | None:
    """The kind that a group is of; None where the model or a whole trajectory does not fit."""
    pool = job.cluster.pools[group.pool]
    try:
        costs = engine_costs(job, group)
    except (CapacityError, InputError):
        return None
    if costs.kv_capacity_tokens < job.training.context_limit + group.block_size:
        return None
    return EngineKind(
        group=group,
        costs=costs,
        load_s=host_to_device_s(costs.weight_bytes, group.tensor_parallel, pool.device),
        spread=pool.count // group.tensor_parallel,
        most=min([pool.count // group.tensor_parallel, *(_most(rule, group) for rule in rules)]),
    )


def describes(rule: EngineRule, group: EngineGroup) -> bool:
    """Whether a rule is about engines like these."""
    return (
        rule.pool in (None, group.pool)
        and rule.tensor_parallel in (None, group.tensor_parallel)
        and rule.expert_parallel in (None, group.expert_parallel)
        and rule.role in (None, group.role)
    )


def _most(rule: EngineRule, group: EngineGroup) -> int:
    """Engines of a kind that a rule on it, alone or with others, leaves."""
    limits = [
        limit for limit in (_limit(rule.engines), _limit(rule.devices, group.tensor_parallel)) if limit is not None
    ]
    return min(limits) if limits and describes(rule, group) else 1_000_000_000


def _limit(bounds: Range | None, devices: int = 1) -> int | None:
    return None if bounds is None else int(bounds.most) // devices


def _groups(job: Job, pool: Pool, roles: tuple[Role, ...]) -> Iterator[EngineGroup]:
    template = _template(job, pool)
    for tensor in TENSOR_PARALLEL:
        if tensor > min(pool.devices_per_node, pool.count):
            return
        for spread in sorted({1, tensor}) if job.model.experts is not None else [1]:
            for role in roles:
                yield replace(
                    template,
                    name=pool.name,
                    pool=pool.name,
                    engines=1,
                    tensor_parallel=tensor,
                    expert_parallel=spread,
                    role=role,
                    time_shared=False,
                )


def _template(job: Job, pool: Pool) -> EngineGroup:
    """Engine settings of the scenario's own placement: those of a group on the pool, or else of any."""
    rollout = [group for group in job.plan.placement.engine_groups if group.role is not Role.JUDGE]
    return next((group for group in rollout if group.pool == pool.name), rollout[0])
