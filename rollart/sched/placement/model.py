"""The rollout model: the best use of the devices that a trainer leaves, for one duration of a step.

Its blocks are kinds, whose engines may work at any mix of batches, each fraction of an engine at its own. That is
more than a plan can do, where the tasks of a group share its engines: so what it promises is a bound. `groups` makes
plans of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.sched.placement import families
from rollart.sched.placement.families import Block, Draft
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.program import INFINITY, Program, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a trainer leaves to the rollout."""

    free: Mapping[str, int]
    """Devices by pool."""
    kinds: frozenset[int]
    """Kinds that may be used."""
    price_per_hour: float = INFINITY
    """Most that the rollout's devices may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How engines roll out."""

    value: float
    """Batches fed in a step, or price of an hour."""
    bound: float
    """Nothing in the room has a better value."""
    engines: Mapping[Block, float]
    work: Mapping[int, float]
    """Column -> engines that work there."""


class RolloutModel:
    """The program for a duration of the step; the room is its parameter."""

    def __init__(
        self, instance: Instance, step_s: float, window_s: float, *, integer: bool, by_batch: bool = False
    ) -> None:
        self.instance = instance
        self.columns = instance.columns(step_s, window_s)
        self.program = Program(integer=integer)
        self.draft = Draft(
            program=self.program,
            instance=instance,
            columns=self.columns,
            step_s=step_s,
            work=[self.program.number() for _ in self.columns],
            blocks=self._blocks(by_batch=by_batch),
            batches=self.program.number(),
        )
        families.add_flow(self.draft)
        families.add_engines(self.draft)
        families.add_environments(self.draft)
        families.add_links(self.draft)
        families.add_rules(self.draft)
        self._devices = families.add_devices(self.draft)
        # Not by the variables' own bounds: SCIP takes an integer of at most one for binary, and for good.
        self._allowed = {block: self.program.at_most(0.0, [(n, 1.0)]) for block, n in self.draft.blocks.items()}
        self._price = families.add_price(self.draft)

    def _blocks(self, *, by_batch: bool) -> dict[Block, Variable]:
        """A variable for the engines of every block; prefill engines have no batch."""
        found = {(column.kind, column.batch if by_batch else -1) for column in self.columns}
        found |= {(column.prefill_kind, -1) for column in self.columns if column.prefill_kind is not None}
        return {block: self.program.count(self.instance.kinds[block[0]].most) for block in sorted(found)}

    def enter(self, room: Room) -> None:
        """Set the room."""
        pools = self.instance.job.cluster.pools
        for (pool, part), limit in self._devices.items():
            limit.SetUb(parts(room.free[pool], pools[pool].devices_per_node, part))
        for (e, _), limit in self._allowed.items():
            limit.SetUb(float(self.instance.kinds[e].most) if e in room.kinds else 0.0)
        self._price.SetUb(room.price_per_hour)

    def most_batches(self, room: Room, *, at_least: float = 0.0, time_limit_s: float = INFINITY) -> Rollout | None:
        """The room's best rate in batches a step; None where it is below `at_least`, or nothing was found in time."""
        self.enter(room)
        self.draft.batches.SetLb(at_least)
        return self._found([(self.draft.batches, 1.0)], maximise=True, time_limit_s=time_limit_s)

    def least_price(self, room: Room, *, time_limit_s: float = INFINITY) -> Rollout | None:
        """The cheapest rollout of the room that feeds a batch in a step; None where there is none."""
        self.enter(room)
        self.draft.batches.SetLb(1.0)
        return self._found(self.draft.prices(), maximise=False, time_limit_s=time_limit_s)

    def _found(self, objective: families.Terms, *, maximise: bool, time_limit_s: float) -> Rollout | None:
        outcome = self.program.solve(objective, maximise=maximise, time_limit_s=time_limit_s)
        if outcome is None:
            return None
        return Rollout(
            value=outcome.value,
            bound=outcome.bound,
            engines={b: n.solution_value() for b, n in self.draft.blocks.items() if n.solution_value() > 1e-6},
            work={k: w.solution_value() for k, w in enumerate(self.draft.work) if w.solution_value() > 1e-6},
        )


def parts(free: int, per_node: int, part: int) -> int:
    """Parts of so many devices within the nodes of free devices; full nodes first."""
    if part > per_node:
        return 0
    return free // per_node * (per_node // part) + free % per_node // part
