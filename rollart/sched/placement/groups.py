"""From a rollout to engine groups: the fewest groups that meet a step, and what given groups make of it.

A group is a kind with a number of engines; its tasks share them, so it works at one batch (between two neighbours of
the grid of batches). That is what a router can do, and what predictions are made of. Under a barrier, where engines
drain, loads of several tasks share an engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.sched.placement.columns import Column
from rollart.sched.placement.families import Block
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.model import RolloutModel, Room

_NODES = 60
"""Of the search for the fewest groups: a few groups too many do no harm."""


_MORE_NODES = 3000
"""Where the first search ended without any groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Engines of a kind and the trajectories of each task on them."""

    kind: int
    engines: int
    running: Mapping[int, float]
    """Task -> trajectories under way on the group."""
    served: Mapping[int, float]
    """Task -> trajectories that the group starts in a step."""


def fewest_groups(
    instance: Instance, room: Room, step_s: float, window_s: float, batches: float, time_limit_s: float
) -> list[Group] | None:
    """The fewest groups that feed so many batches in a step; None where none were found in time."""
    by_batch = not instance.composition.barrier
    model = RolloutModel(instance, step_s, window_s, integer=True, by_batch=by_batch)
    model.enter(room)
    program, draft = model.program, model.draft
    draft.batches.SetLb(batches)
    used = {block: program.count(1) for block in draft.blocks}
    for block, engines in draft.blocks.items():
        program.at_most(0.0, [(engines, 1.0), (used[block], -float(instance.kinds[block[0]].most))])
    # The price breaks ties, far below the worth of a group.
    most = sum(
        price * instance.kinds[block[0]].most for block, (_, price) in zip(draft.blocks, draft.prices(), strict=True)
    )
    price = [(engines, 0.1 * each / max(most, 1e-9)) for engines, each in draft.prices()]
    objective = [*((flag, 1.0) for flag in used.values()), *price]
    for nodes in (_NODES, _MORE_NODES):
        if program.solve(objective, maximise=False, time_limit_s=time_limit_s, nodes=nodes) is not None:
            break
        if program.proven:
            return None
    else:
        return None
    counts = {block: round(engines.solution_value()) for block, engines in draft.blocks.items()}
    work = {k: w.solution_value() for k, w in enumerate(draft.work) if w.solution_value() > 1e-6}
    groups = []
    for block, engines in counts.items():
        if engines:
            at = {k: w for k, w in work.items() if _is_of(model.columns[k], block)}
            groups.append(_group(block[0], engines, model, at))
    return groups


def _is_of(column: Column, block: Block) -> bool:
    return column.kind == block[0] and block[1] in (column.batch, -1)


def _group(kind: int, engines: int, model: RolloutModel, work: Mapping[int, float]) -> Group:
    running: dict[int, float] = {}
    served: dict[int, float] = {}
    for k, amount in work.items():
        column = model.columns[k]
        running[column.task] = running.get(column.task, 0.0) + amount * column.concurrency
        served[column.task] = served.get(column.task, 0.0) + amount * column.starts
    return Group(kind=kind, engines=engines, running=running, served=served)
