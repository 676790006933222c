"""The constraint families of the model, each named by its equation in docs/planner.md.

n[b]      engines of block b: of a kind, or of a kind at one batch
w[k]      engines of its block that work at column k
phi       batches that the rollout feeds in a step

(1) rate          sum over the columns of task d of starts[k] trained[k] w[k] >= phi * starts of a batch of d
(2) engines       sum over the columns of block b of w[k] <= n[b]
(3) devices       sum over the blocks of a pool of TP[b] n[b] <= devices that the trainer leaves
(4) nodes         for t = 2, 4, ...: sum over the blocks with TP[b] >= t of TP[b] / t n[b] <= parts of t in nodes
(5) slots         sum of c[k] w[k] <= environment slots
(6) quota         sum over the columns of d of c[k] w[k] <= trajectories that the policy lets be under way
(7) barrier       sum over the columns of d of (unfinished[k] - ahead) starts[k] w[k] <= 0
(8) environments  sum of starts[k] busy[d] cores[d] w[k] <= cores * step
(9) rewards       sum of starts[k] reward[d] w[k] <= function concurrency (or workers of d) * step
(10) pairs        sum of use[k] w[k] <= utilisation * n[f] for every prefill kind f
(11) links        sum of moved[k] w[k] <= bandwidth between the pools of a pair
(12) rules        bounds of the scenario on engines, devices and shares
(13) price        sum of price[b] TP[b] n[b] <= what is left of the budget
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollart.domain.planning import Range
from rollart.domain.task import RewardKind
from rollart.sched.placement.columns import Column
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.kinds import describes
from rollart.sched.placement.program import INFINITY, Constraint, Program, Variable

PREFILL_UTILISATION = 0.7
"""Most of a prefill engine's time that is planned for: beyond it, turns queue longer than they are computed."""

Block = tuple[int, int]
"""A kind, and a batch or -1 for all of its batches."""
Terms = list[tuple[Variable, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A program under construction: its columns and variables."""

    program: Program
    instance: Instance
    columns: Sequence[Column]
    step_s: float
    work: Sequence[Variable]
    """Of each column."""
    blocks: Mapping[Block, Variable]
    batches: Variable

    def of_task(self, task: int) -> list[tuple[Column, Variable]]:
        """Columns of a task, with their work."""
        return [pair for pair in zip(self.columns, self.work, strict=True) if pair[0].task == task]

    def prices(self) -> Terms:
        """Price of an hour of all engines."""
        kinds, pools = self.instance.kinds, self.instance.job.cluster.pools
        return [(n, kinds[e].devices * pools[kinds[e].pool].price_per_hour) for (e, _), n in self.blocks.items()]


def add_flow(draft: Draft) -> None:
    """Rate, slots, quota and barrier: (1), (5), (6), (7)."""
    composition = draft.instance.composition
    everything = [(work, column.concurrency) for column, work in zip(draft.columns, draft.work, strict=True)]
    draft.program.at_most(float(draft.instance.slots), everything)
    for d, demand in enumerate(draft.instance.demands):
        of_task = draft.of_task(d)
        # In batches, so that coefficients are of order one.
        served = [(work, -column.starts * column.trained / demand.starts) for column, work in of_task]
        draft.program.at_most(0.0, [*served, (draft.batches, 1.0)])
        most = demand.starts * composition.under_way
        draft.program.at_most(1.0, [(work, column.concurrency / most) for column, work in of_task])
        open_groups = [(w, (column.unfinished - composition.ahead) * column.starts) for column, w in of_task]
        if any(factor > 0 for _, factor in open_groups):
            draft.program.at_most(0.0, open_groups)


def add_engines(draft: Draft) -> None:
    """Engines and pairs: (2), (10)."""
    used: dict[Block, Terms] = {block: [] for block in draft.blocks}
    for column, work in zip(draft.columns, draft.work, strict=True):
        used[block_of(column.kind, column.batch, draft.blocks)].append((work, 1.0))
        if column.prefill_kind is not None:
            busy = column.prefill_use / PREFILL_UTILISATION
            used[block_of(column.prefill_kind, 0, draft.blocks)].append((work, busy))
    for block, terms in used.items():
        draft.program.at_most(0.0, [*terms, (draft.blocks[block], -1.0)])


def block_of(kind: int, batch: int, blocks: Mapping[Block, Variable]) -> Block:
    """The block of a kind at a batch."""
    return (kind, batch) if (kind, batch) in blocks else (kind, -1)


def add_devices(draft: Draft) -> dict[tuple[str, int], Constraint]:
    """Devices and nodes: (3), (4); (pool, part) -> the limit in parts of so many devices, to be set."""
    kinds = draft.instance.kinds
    limits = {}
    for pool in draft.instance.job.cluster.pools:
        for part in sorted({1} | {kind.devices for kind in kinds if kind.pool == pool}):
            terms = [
                (engines, kinds[e].devices / part)
                for (e, _), engines in draft.blocks.items()
                if kinds[e].pool == pool and kinds[e].devices >= part
            ]
            limits[pool, part] = draft.program.at_most(0.0, terms)
    return limits


def add_environments(draft: Draft) -> None:
    """Environment cores and rewards: (8), (9)."""
    cluster = draft.instance.job.cluster
    busy: Terms = []
    functions: Terms = []
    for d, demand in enumerate(draft.instance.demands):
        needs = demand.task.reward
        rates = [(work, column.starts / draft.step_s) for column, work in draft.of_task(d)]
        busy += [(work, rate * demand.busy_s * demand.task.environment.cores) for work, rate in rates]
        scored = [(work, rate * demand.reward_s) for work, rate in rates]
        if needs.kind is RewardKind.SERVERLESS:
            functions += scored
        elif needs.kind is RewardKind.LOCAL:
            draft.program.at_most(float(needs.workers), scored)
    draft.program.at_most(cluster.environments.cores, busy)
    draft.program.at_most(float(cluster.serverless.max_concurrency), functions)


def add_links(draft: Draft) -> None:
    """KV between the pools of a pair: (11)."""
    kinds, cluster = draft.instance.kinds, draft.instance.job.cluster
    moved: dict[tuple[str, str], Terms] = {}
    for column, work in zip(draft.columns, draft.work, strict=True):
        if column.prefill_kind is not None:
            ends = (kinds[column.prefill_kind].pool, kinds[column.kind].pool)
            moved.setdefault(ends, []).append((work, column.moved_bytes_per_s / 1e9))
    for (here, there), terms in moved.items():
        draft.program.at_most(cluster.link(here, there).bandwidth_bytes_per_s / 1e9, terms)


def add_rules(draft: Draft) -> None:
    """Pinned and bounded decisions: (12)."""
    kinds, rules = draft.instance.kinds, draft.instance.rules
    for rule in rules.engines:
        described = [(kinds[e], n) for (e, _), n in draft.blocks.items() if describes(rule, kinds[e].group)]
        _bounded(draft.program, rule.engines, [(n, 1.0) for _, n in described])
        _bounded(draft.program, rule.devices, [(n, float(kind.devices)) for kind, n in described])
    for share in rules.tasks:
        task = next(d for d, demand in enumerate(draft.instance.demands) if demand.task.name == share.task)
        least, most = share.share.least, share.share.most
        too_much, too_little = [], []
        for column, work in draft.of_task(task):
            kind = kinds[column.kind]
            there = share.pool in (None, kind.pool) and share.role in (None, kind.role)
            yields = column.starts * column.trained
            too_much.append((work, yields * (there - most)))
            too_little.append((work, yields * (least - there)))
        draft.program.at_most(0.0, too_much)
        draft.program.at_most(0.0, too_little)


def _bounded(program: Program, bounds: Range | None, terms: Terms) -> None:
    if bounds is not None:
        program.at_most(bounds.most, terms).SetLb(bounds.least)


def add_price(draft: Draft) -> Constraint:
    """The budget: (13), to be set."""
    return draft.program.at_most(INFINITY, draft.prices())
